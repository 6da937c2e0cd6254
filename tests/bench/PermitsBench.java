// PermitsBench.java - what the JDK's own name check costs, to print beside bench_policy.
// usage: java --add-exports java.base/sun.security.util=ALL-UNNAMED
//             --add-opens java.base/sun.security.util=ALL-UNNAMED PermitsBench.java LIST
// LIST holds one list of disabled algorithms. "uncached" is the look into the set, as every first check does it.

import java.lang.invoke.*;
import java.nio.file.*;
import java.security.*;
import java.util.*;
import sun.security.util.*;

public class PermitsBench {
    static final int ROUNDS = 15, CALLS = 1_000_000;
    static volatile boolean sink;

    interface Check {
        boolean permits(String name) throws Throwable;
    }

    static double medianNs(Check check, String name) throws Throwable {
        double[] round = new double[ROUNDS];
        for (int i = 0; i < ROUNDS; i++) {
            boolean any = false;
            long start = System.nanoTime();
            for (int j = 0; j < CALLS; j++)
                any ^= check.permits(name);
            round[i] = (System.nanoTime() - start) / (double) CALLS;
            sink = any;
        }
        Arrays.sort(round);
        return round[ROUNDS / 2];
    }

    public static void main(String[] args) throws Throwable {
        String property = "jdk.test.disabledAlgorithms";
        Security.setProperty(property, Files.readString(Path.of(args[0])).strip());
        AlgorithmConstraints constraints = new DisabledAlgorithmConstraints(property);
        Set<CryptoPrimitive> any = EnumSet.of(CryptoPrimitive.SIGNATURE);

        Class<?> base = DisabledAlgorithmConstraints.class.getSuperclass();
        var lookup = MethodHandles.privateLookupIn(base, MethodHandles.lookup());
        var set = new TreeSet<>(String.CASE_INSENSITIVE_ORDER);
        for (String item : Security.getProperty(property).split(","))
            set.add(item.trim());
        MethodHandle uncached = lookup.findStatic(base, "checkAlgorithm",
                MethodType.methodType(boolean.class, Set.class, String.class, AlgorithmDecomposer.class));
        AlgorithmDecomposer decomposer = new AlgorithmDecomposer();

        System.out.printf("%-36s %12s %12s%n", "ns a check, median", "cached", "uncached");
        for (String name : List.of("SSLv3", "DES", "NULL", "TLS1.3", "absent", "MD5withRSA"))
            System.out.printf("%-36s %12.2f %12.2f%n", name,
                    medianNs(n -> constraints.permits(any, n, null), name),
                    medianNs(n -> (boolean) uncached.invokeExact((Set<String>) set, n, decomposer), name));
    }
}
