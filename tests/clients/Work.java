// Work.java - what Java programs do with SunPKCS11: java Work CONFIG MODE
//   tls              a server and a client, the server's key on the token, one connection for each of TLS 1.2 and 1.3;
//                    then draws
//   draws            eight threads share a generator by its name: session ids of 44 letters, and requests of odd sizes
//   services         the provider's services, sorted, one a line
//   sign NAME BITS   signs with a new RSA key of the token, and verifies
//   beside CONFIG    two providers in one JVM: each draws while the other does, and a digest is cloned half way
import java.net.InetAddress;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.Provider;
import java.security.SecureRandom;
import java.security.Security;
import java.security.Signature;
import java.util.Arrays;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

public class Work {
    static final int THREADS = 8;
    static final int IDS = 18; // of each thread
    static final int PARTS = 20;
    static final int[] SIZES = {31, 32, 33, 100, 1023, 1024, 1025, 5000, 60000}; // softoken takes no more than 64 KiB;

    static void need(boolean is, String what) {
        if (!is) {
            throw new IllegalStateException(what);
        }
    }

    /** Runs the pieces of work side by side, and fails if one does. */
    static void together(List<Callable<Void>> pieces) throws Exception {
        var pool = Executors.newCachedThreadPool();
        for (Future<Void> one : pool.invokeAll(pieces)) {
            one.get();
        }
        pool.shutdown();
    }

    static SSLContext context(Provider provider) throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS11", provider);
        store.load(null, "1234".toCharArray());
        KeyManagerFactory keys = KeyManagerFactory.getInstance("SunX509");
        keys.init(store, null);
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry("server", store.getCertificate("key"));
        TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), SecureRandom.getInstance("PKCS11", provider));
        return context;
    }

    /** Each side shows the token's certificate, and signs with the token's key. */
    static void connect(SSLContext context, String protocol) throws Exception {
        SSLServerSocket server = (SSLServerSocket) context.getServerSocketFactory()
                .createServerSocket(0, 1, InetAddress.getLoopbackAddress());
        server.setNeedClientAuth(true);
        Callable<Void> answer = () -> {
            try (SSLSocket socket = (SSLSocket) server.accept()) {
                socket.getOutputStream().write(socket.getInputStream().readNBytes(5));
            }
            return null;
        };
        Callable<Void> ask = () -> {
            try (SSLSocket socket = (SSLSocket) context.getSocketFactory()
                    .createSocket(server.getInetAddress(), server.getLocalPort())) {
                socket.setEnabledProtocols(new String[] {protocol});
                socket.getOutputStream().write("hello".getBytes());
                need("hello".equals(new String(socket.getInputStream().readNBytes(5))), "the echo is another");
                System.out.println(socket.getSession().getProtocol());
            }
            return null;
        };
        together(List.of(answer, ask));
        server.close();
    }

    static void clones(Provider provider) throws Exception {
        byte[] part = new byte[1000];
        MessageDigest whole = MessageDigest.getInstance("SHA-256", provider);
        MessageDigest plain = MessageDigest.getInstance("SHA-256", "SUN");
        for (int i = 0; i < PARTS; i++) {
            whole.update(part);
            plain.update(part);
            byte[] wanted = ((MessageDigest) plain.clone()).digest();
            need(Arrays.equals(((MessageDigest) whole.clone()).digest(), wanted), "a clone's digest is another");
        }
        System.out.println(HexFormat.of().formatHex(whole.digest()));
    }

    static String id(SecureRandom random) {
        StringBuilder id = new StringBuilder();
        for (int k = 0; k < 44; k++) {
            id.append((char) ('0' + random.nextInt(64)));
        }
        return id.toString();
    }

    static Void draw(Provider provider) throws Exception {
        SecureRandom random = SecureRandom.getInstance("PKCS11", provider);
        Set<String> seen = ConcurrentHashMap.newKeySet();
        together(Collections.nCopies(THREADS, () -> {
            for (int i = 0; i < IDS; i++) {
                byte[] bytes = new byte[SIZES[i % SIZES.length]];
                random.nextBytes(bytes);
                need(seen.add(id(random)) && seen.add(Arrays.toString(bytes)), "bytes that came before");
            }
            return null;
        }));
        System.out.println(seen.size() + " draws");
        return null;
    }

    static boolean signs(Provider provider, String algorithm, int bits) throws Exception {
        KeyStore.getInstance("PKCS11", provider).load(null, "1234".toCharArray());
        KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA", provider);
        generator.initialize(bits);
        KeyPair keys = generator.generateKeyPair();
        Signature signer = Signature.getInstance(algorithm, provider);
        signer.initSign(keys.getPrivate());
        signer.update(new byte[100]);
        byte[] signature = signer.sign();
        signer.initVerify(keys.getPublic());
        signer.update(new byte[100]);
        return signer.verify(signature);
    }

    public static void main(String[] args) throws Exception {
        Provider provider = Security.getProvider("SunPKCS11").configure(args[0]);
        switch (args[1]) {
        case "services":
            provider.getServices().stream().map(s -> s.getType() + " " + s.getAlgorithm()).sorted()
                    .forEach(System.out::println);
            return;
        case "sign":
            need(signs(provider, args[2], Integer.parseInt(args[3])), "the signature is not the key's");
            return;
        case "tls":
            Security.addProvider(provider);
            SSLContext context = context(provider);
            connect(context, "TLSv1.2");
            connect(context, "TLSv1.3");
            break;
        default:
        }
        draw(provider);
        if (args[1].equals("beside")) {
            Provider other = Security.getProvider("SunPKCS11").configure(args[2]);
            clones(other);
            together(List.of(() -> draw(provider), () -> draw(other)));
            clones(other);
        }
    }
}
