// Permits.java - what the JDK's own name check says of each name, for comparing with ours.
// usage: Permits LIST NAMES - LIST holds one list of disabled algorithms, NAMES one name a line

import java.nio.file.*;
import java.security.*;
import java.util.*;
import sun.security.util.DisabledAlgorithmConstraints;

public class Permits {
    public static void main(String[] args) throws Exception {
        String property = "jdk.test.disabledAlgorithms";
        Security.setProperty(property, Files.readString(Path.of(args[0])).strip());
        AlgorithmConstraints constraints = new DisabledAlgorithmConstraints(property);
        Set<CryptoPrimitive> any = EnumSet.of(CryptoPrimitive.SIGNATURE);
        for (String name : Files.readAllLines(Path.of(args[1])))
            System.out.println((constraints.permits(any, name, null) ? "permits " : "denies  ") + name);
    }
}
