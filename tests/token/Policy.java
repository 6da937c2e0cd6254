// Policy.java - what SunPKCS11 makes of a policy: java Policy CONFIG MODE [ALGORITHM]
//   services           the provider's services, sorted, one a line
//   sign ALGORITHM     signs with an RSA key of the token, and verifies: prints "signed" or the cause
//   digest ALGORITHM   the same for a digest
//   clone ALGORITHM    a copy of a digest half way, without a login: prints "the same" if it goes on like the first
//   key BITS           generates an RSA key pair
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.Provider;
import java.security.Security;
import java.security.Signature;

public class Policy {
    static KeyPair newKeys(Provider provider, int bits) throws Exception {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA", provider);
        generator.initialize(bits);
        return generator.generateKeyPair();
    }

    static void sign(Provider provider, String algorithm) throws Exception {
        KeyPair keys = newKeys(provider, 2048);
        Signature signer = Signature.getInstance(algorithm, provider);
        signer.initSign(keys.getPrivate());
        signer.update(new byte[100]);
        byte[] signature = signer.sign();
        signer.initVerify(keys.getPublic());
        signer.update(new byte[100]);
        System.out.println(signer.verify(signature) ? "signed" : "not verified");
    }

    static void copy(Provider provider, String algorithm) throws Exception {
        MessageDigest digest = MessageDigest.getInstance(algorithm, provider);
        digest.update(new byte[100]);
        MessageDigest copy = (MessageDigest) digest.clone();
        digest.update(new byte[100]);
        copy.update(new byte[100]);
        boolean same = MessageDigest.isEqual(digest.digest(), copy.digest());
        System.out.println(same ? "the same" : "not the same");
    }

    static void run(Provider provider, String[] args) throws Exception {
        switch (args[1]) {
        case "services":
            provider.getServices().stream().map(s -> s.getType() + " " + s.getAlgorithm()).sorted()
                    .forEach(System.out::println);
            break;
        case "sign":
            sign(provider, args[2]);
            break;
        case "digest":
            System.out.println(MessageDigest.getInstance(args[2], provider).digest(new byte[1]).length);
            break;
        case "clone":
            copy(provider, args[2]);
            break;
        case "key":
            newKeys(provider, Integer.parseInt(args[2]));
            System.out.println("generated");
            break;
        default:
            throw new IllegalArgumentException(args[1]);
        }
    }

    public static void main(String[] args) throws Exception {
        Provider provider = Security.getProvider("SunPKCS11").configure(args[0]);
        if (!args[1].equals("clone")) {
            KeyStore.getInstance("PKCS11", provider).load(null, "1234".toCharArray());
        }
        try {
            run(provider, args);
        } catch (Exception e) {
            for (Throwable cause = e; cause != null; cause = cause.getCause()) {
                System.out.println(cause);
            }
            System.exit(1);
        }
    }
}
