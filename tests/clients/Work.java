// Work.java - what Java programs do with SunPKCS11: java Work CONFIG MODE
//   tls              a server and a client, the server's key on the token, one connection for each of TLS 1.2 and 1.3;
//                    then draws
//   draws            eight threads share a generator by its name: session ids of 44 letters, and requests of odd sizes
//   services         the provider's services, sorted, one a line
//   sign NAME BITS   signs with a new RSA key of the token, and verifies
//   beside CONFIG    two providers in one JVM: each draws while the other does, and a digest is cloned half way
import java.net.InetAddress;
import java.security.*;
import java.util.*;
import java.util.concurrent.*;
import javax.net.ssl.*;

public class Work {
    static final int THREADS = 8;
    static final int IDS = 18; // of each thread
    static final int PARTS = 20;
    static final int[] SIZES = {31, 32, 33, 100, 1023, 1024, 1025, 5000, 60000}; // softoken takes no more than 64 KiB
    static final char[] PIN = "1234".toCharArray();

    static void need(boolean is, String what) {
        if (!is) {
            throw new IllegalStateException(what);
        }
    }

    static Provider provider(String config) {
        return Security.getProvider("SunPKCS11").configure(config);
    }

    static SecureRandom random(Provider provider) throws Exception {
        return SecureRandom.getInstance("PKCS11", provider);
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
        store.load(null, PIN);
        var keys = KeyManagerFactory.getInstance("SunX509");
        keys.init(store, null);
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry("server", store.getCertificate("key"));
        var trust = TrustManagerFactory.getInstance("PKIX");
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), random(provider));
        return context;
    }

    /** Each side shows the token's certificate, and signs with the token's key. */
    static void connect(SSLContext context, String protocol) throws Exception {
        var server = (SSLServerSocket) context.getServerSocketFactory()
                .createServerSocket(0, 1, InetAddress.getLoopbackAddress());
        server.setNeedClientAuth(true);
        together(List.of(() -> {
            try (var socket = server.accept()) {
                socket.getOutputStream().write(socket.getInputStream().readNBytes(5));
            }
            return null;
        }, () -> {
            try (var socket = (SSLSocket) context.getSocketFactory()
                    .createSocket(server.getInetAddress(), server.getLocalPort())) {
                socket.setEnabledProtocols(new String[] {protocol});
                socket.getOutputStream().write("hello".getBytes());
                need("hello".equals(new String(socket.getInputStream().readNBytes(5))), "the echo is another");
                System.out.println(socket.getSession().getProtocol());
            }
            return null;
        }));
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
        SecureRandom random = random(provider);
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
        KeyStore.getInstance("PKCS11", provider).load(null, PIN);
        var generator = KeyPairGenerator.getInstance("RSA", provider);
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
        Provider provider = provider(args[0]);
        switch (args[1]) {
        case "services" -> provider.getServices().stream().map(s -> s.getType() + " " + s.getAlgorithm()).sorted()
                .forEach(System.out::println);
        case "sign" -> need(signs(provider, args[2], Integer.parseInt(args[3])), "the signature is not the key's");
        case "tls" -> {
            Security.addProvider(provider);
            SSLContext context = context(provider);
            connect(context, "TLSv1.2");
            connect(context, "TLSv1.3");
            draw(provider);
        }
        case "draws" -> draw(provider);
        case "beside" -> {
            Provider other = provider(args[2]);
            draw(provider);
            clones(other);
            together(List.of(() -> draw(provider), () -> draw(other)));
            clones(other);
        }
        default -> throw new IllegalArgumentException(args[1]);
        }
    }
}
