// Ids.java - what a servlet container does for session ids, through SunPKCS11: java Ids.java CONFIG MODE [N]
//   ids N       N ids of 44 letters each, all different; prints ms per id
//   sizes N     N rounds of requests of odd sizes
//   threads N   N ids in all, from 8 threads that share one generator
import java.security.Provider;
import java.security.SecureRandom;
import java.security.Security;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

public class Ids {
    static final int LETTERS = 44;
    static final int THREADS = 8;
    static final Set<String> seen = ConcurrentHashMap.newKeySet();
    static volatile Throwable failure;

    static void drawIds(SecureRandom random, int count) {
        for (int i = 0; i < count; i++) {
            StringBuilder id = new StringBuilder(LETTERS);
            for (int k = 0; k < LETTERS; k++) {
                id.append((char) ('0' + random.nextInt(64)));
            }
            if (!seen.add(id.toString())) {
                throw new IllegalStateException("the same id twice: " + id);
            }
        }
    }

    static void drawSizes(SecureRandom random, int rounds) {
        int[] sizes = {1, 7, 8, 31, 32, 33, 100, 1023, 1024, 1025, 5000, 70000};
        for (int i = 0; i < rounds; i++) {
            for (int size : sizes) {
                byte[] bytes = new byte[size];
                random.nextBytes(bytes);
                if (size >= 31 && !seen.add(java.util.Arrays.toString(bytes))) {
                    throw new IllegalStateException(size + " bytes that came before");
                }
            }
        }
    }

    static void drawInThreads(SecureRandom random, int count) throws Exception {
        Thread[] threads = new Thread[THREADS];
        for (int t = 0; t < THREADS; t++) {
            threads[t] = new Thread(() -> {
                try {
                    drawIds(random, count / THREADS);
                    drawSizes(random, 3);
                } catch (Throwable e) {
                    failure = e;
                }
            });
            threads[t].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        if (failure != null) {
            throw new IllegalStateException(failure);
        }
    }

    public static void main(String[] args) throws Exception {
        Provider provider = Security.getProvider("SunPKCS11").configure(args[0]);
        SecureRandom random = SecureRandom.getInstance("PKCS11", provider);
        int count = args.length > 2 ? Integer.parseInt(args[2]) : 10000;
        long begin = System.nanoTime();
        switch (args[1]) {
            case "ids" -> drawIds(random, count);
            case "sizes" -> drawSizes(random, count);
            case "threads" -> drawInThreads(random, count);
            default -> throw new IllegalArgumentException(args[1]);
        }
        System.out.printf("%s: %.4f ms each%n", args[1], (System.nanoTime() - begin) / 1e6 / count);
    }
}
