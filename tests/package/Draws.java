// Draws.java - goes on while its module is replaced: draws a thousand random ints for each line that it reads.
// java Draws.java CONFIG
import java.security.Provider;
import java.security.SecureRandom;
import java.security.Security;

public class Draws {
    public static void main(String[] args) throws Exception {
        Provider token = Security.getProvider("SunPKCS11").configure(args[0]);
        SecureRandom random = SecureRandom.getInstance("PKCS11", token);
        while (System.in.read() >= 0) {
            for (int i = 0; i < 1000; i++) {
                random.nextInt();
            }
            System.out.println("drawn");
        }
    }
}
