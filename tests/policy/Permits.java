// Permits.java - what the JDK's own name check says of each name, for comparing with ours.
// usage: Permits LIST NAMES - LIST holds one list (*.list), or is a file of lists, of which any may deny;
// NAMES holds one name a line

import java.io.*;
import java.nio.file.*;
import java.security.*;
import java.util.*;
import sun.security.util.DisabledAlgorithmConstraints;

public class Permits {
    static AlgorithmConstraints constraints(String property, String list) {
        Security.setProperty(property, list);
        return new DisabledAlgorithmConstraints(property);
    }

    public static void main(String[] args) throws Exception {
        List<AlgorithmConstraints> all = new ArrayList<>();
        if (args[0].endsWith(".list")) {
            all.add(constraints("jdk.test.disabledAlgorithms", Files.readString(Path.of(args[0])).strip()));
        } else {
            Properties lists = new Properties();
            lists.load(new FileInputStream(args[0]));
            Security.setProperty("jdk.disabled.namedCurves", lists.getProperty("jdk.disabled.namedCurves", ""));
            for (String key : lists.stringPropertyNames())
                if (key.endsWith("disabledAlgorithms"))
                    all.add(constraints(key, lists.getProperty(key)));
        }
        Set<CryptoPrimitive> any = EnumSet.of(CryptoPrimitive.SIGNATURE);
        for (String name : Files.readAllLines(Path.of(args[1])))
            System.out.println((all.stream().allMatch(c -> c.permits(any, name, null)) ? "permits " : "denies  ") + name);
    }
}
