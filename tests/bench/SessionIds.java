// SessionIds.java - what one session id costs, drawn as servlet containers do: 44 letters, each by nextInt(64).
//
//     java SessionIds.java WHERE IDS [THREADS]
//
// WHERE is a configuration of SunPKCS11, or the name of one of the JDK's own generators. All threads share the one
// generator. Prints nanoseconds for one id: what the whole took, divided by the ids.
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.security.Security;

public class SessionIds {
    static final int LETTERS = 44;
    static volatile int sink;

    static void draw(SecureRandom random, int ids) {
        int sum = 0;
        for (int i = 0; i < ids; i++) {
            StringBuilder id = new StringBuilder(LETTERS);
            for (int k = 0; k < LETTERS; k++) {
                id.append((char) ('0' + random.nextInt(64)));
            }
            sum += id.hashCode();
        }
        sink = sum;
    }

    public static void main(String[] args) throws Exception {
        int ids = Integer.parseInt(args[1]);
        Thread[] threads = new Thread[args.length > 2 ? Integer.parseInt(args[2]) : 1];
        SecureRandom random = Files.exists(Path.of(args[0]))
                ? SecureRandom.getInstance("PKCS11", Security.getProvider("SunPKCS11").configure(args[0]))
                : SecureRandom.getInstance(args[0]);
        long begin = System.nanoTime();
        for (int t = 0; t < threads.length; t++) {
            threads[t] = new Thread(() -> draw(random, ids / threads.length));
            threads[t].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.printf("%.1f%n", (System.nanoTime() - begin) / (double) ids);
    }
}
