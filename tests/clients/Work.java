// Work.java - what Java programs do with SunPKCS11: java Work CONFIG MODE [ARGUMENT...]
//   tls              a server and a client, the server's key on the token, one connection for each of TLS 1.2 and 1.3
//   clones           a digest is cloned half way, and both halves end well
//   beside CONFIG    two providers in one JVM: each draws and hashes while the other does
//   threads N        N draws of 32 bytes from eight threads that share a generator by its name
//   ids N            N session ids of 44 letters each, as a servlet container makes them; prints ms per id
//   sizes N          N rounds of requests of odd sizes
import java.io.InputStream;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.Provider;
import java.security.SecureRandom;
import java.security.Security;
import java.util.Arrays;
import java.util.HexFormat;
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
    static final int PARTS = 20;

    static void need(boolean is, String what) {
        if (!is) {
            throw new IllegalStateException(what);
        }
    }

    /** Runs the pieces of work side by side, and fails if one does. */
    static void together(Iterable<Callable<Void>> pieces) throws Exception {
        var pool = Executors.newCachedThreadPool();
        var running = new java.util.ArrayList<Future<Void>>();
        for (var piece : pieces) {
            running.add(pool.submit(piece));
        }
        pool.shutdown();
        for (var one : running) {
            one.get();
        }
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
                .createServerSocket(0, 1, java.net.InetAddress.getLoopbackAddress());
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
                InputStream in = socket.getInputStream();
                need("hello".equals(new String(in.readNBytes(5))), "the echo is another");
                System.out.println(socket.getSession().getProtocol());
            }
            return null;
        };
        together(Arrays.asList(answer, ask));
        server.close();
    }

    static void clones(Provider provider, String algorithm) throws Exception {
        byte[] part = new byte[1000];
        MessageDigest whole = MessageDigest.getInstance(algorithm, provider);
        for (int i = 0; i < PARTS; i++) {
            whole.update(part);
            MessageDigest copy = (MessageDigest) whole.clone();
            MessageDigest plain = MessageDigest.getInstance(algorithm, "SUN");
            for (int k = 0; k <= i; k++) {
                plain.update(part);
            }
            need(Arrays.equals(copy.digest(), plain.digest()), "a clone's digest is another");
        }
        System.out.println(algorithm + " " + HexFormat.of().formatHex(whole.digest()));
    }

    static void draw(Provider provider, int count) throws Exception {
        SecureRandom random = SecureRandom.getInstance("PKCS11", provider);
        Set<String> seen = ConcurrentHashMap.newKeySet();
        var pieces = new java.util.ArrayList<Callable<Void>>();
        for (int t = 0; t < THREADS; t++) {
            pieces.add(() -> {
                for (int i = 0; i < count / THREADS; i++) {
                    byte[] bytes = new byte[32];
                    random.nextBytes(bytes);
                    need(seen.add(Arrays.toString(bytes)), "the same bytes twice");
                }
                return null;
            });
        }
        together(pieces);
        System.out.println(seen.size() + " draws");
    }

    static void ids(SecureRandom random, int count) {
        Set<String> seen = ConcurrentHashMap.newKeySet();
        long begin = System.nanoTime();
        for (int i = 0; i < count; i++) {
            StringBuilder id = new StringBuilder();
            for (int k = 0; k < 44; k++) {
                id.append((char) ('0' + random.nextInt(64)));
            }
            need(seen.add(id.toString()), "the same id twice");
        }
        System.out.printf("%d ids: %.4f ms each%n", count, (System.nanoTime() - begin) / 1e6 / count);
    }

    static void sizes(SecureRandom random, int rounds) {
        Set<String> seen = ConcurrentHashMap.newKeySet();
        for (int i = 0; i < rounds; i++) {
            for (int size : new int[] {1, 7, 8, 31, 32, 33, 100, 1023, 1024, 1025, 5000, 70000}) {
                byte[] bytes = new byte[size];
                random.nextBytes(bytes);
                need(size < 31 || seen.add(Arrays.toString(bytes)), size + " bytes that came before");
            }
        }
        System.out.println(seen.size() + " draws");
    }

    public static void main(String[] args) throws Exception {
        Provider provider = Security.getProvider("SunPKCS11").configure(args[0]);
        switch (args[1]) {
            case "tls" -> {
                Security.addProvider(provider);
                SSLContext context = context(provider);
                connect(context, "TLSv1.2");
                connect(context, "TLSv1.3");
            }
            case "clones" -> clones(provider, "SHA-256");
            case "beside" -> {
                Provider other = Security.getProvider("SunPKCS11").configure(args[2]);
                draw(provider, 400);
                draw(other, 400);
                together(Arrays.asList(() -> { draw(provider, 400); return null; },
                        () -> { draw(other, 400); return null; }));
            }
            case "ids" -> ids(SecureRandom.getInstance("PKCS11", provider), Integer.parseInt(args[2]));
            case "sizes" -> sizes(SecureRandom.getInstance("PKCS11", provider), Integer.parseInt(args[2]));
            case "threads" -> draw(provider, Integer.parseInt(args[2]));
            default -> throw new IllegalArgumentException(args[1]);
        }
    }
}
