/* test_policy_names.c - the name check: what the JDK would say of a name. */
#include "policy_helper.h"

TEST(the_56_names_deny_and_permit_as_the_jdk_does)
{
    struct policy *policy = NULL;
    ck_assert_int_eq(policy_try(&policy, NULL, "names-56.security", NOW_S), 0);
    judges_names(policy, true,
                 "MD5withRSA|md5WithRsa|DES|DES/CBC/PKCS5Padding|3DES_EDE_CBC|RC4|PBEWithMD5AndDES|"
                 "secp256k1|NULL|null|sslv3|anon|X9.62 c2tnb191v1|brainpoolP512r1|"
                 "des/ecb/nopadding|ARCFOUR");
    judges_names(policy, false,
                 "SHA1withRSA|MD5|MD5withECDSA|DESede/CBC/PKCS5Padding|ECDH|ECDHE|EC|DH|TLS1.3|"
                 "TLSv1.3|HmacMD5|AES/ECB/NoPadding|DSA|RSA||/|with|DESede|secp256r1|no such name");
    ck_assert_str_eq(policy_name(policy, "PBEWithMD5AndDES")->text, "DES");
    ck_assert_uint_eq(policy_name(policy, "brainpoolp512R1")->line, 10);
    policy_free(policy);
}

TEST(names_are_taken_apart_and_have_synonyms)
{
    struct policy *policy = policy_of("SHA1, DES, SHA-512", NULL);
    judges_names(policy, true,
                 "SHA-1|SHA|SHA1withRSA|SHA-1withFoo|FooANDsha1|FooWithBarInDES|DES/Foo/Bar|"
                 "x/y/des|DES/x|SHA1inx|xANDdes|DESwithx|xWithDES|SHA512withRSA");
    judges_names(policy, false,
                 "HmacSHA1|SHA256withRSA|wi/DESx|DESX/Foo/Bar|SHA1x|FooPaddingDES|SHA-512/256|"
                 "SHA512/224withRSA");
    policy_free(policy);
}

TEST(names_and_numbers_of_mechanisms_answer_as_the_mechanism)
{
    struct policy *policy = policy_of("MD5, 0x80001234", NULL);
    judges_names(policy, true, "CKM_MD5_RSA_PKCS|ckm_md5|0x210|528|0x80001234");
    judges_names(policy, false, "0x80001235|CKM_SHA_1|99999999999999999999999");
    policy_free(policy);
}

TEST(fifty_six_thousand_names_are_each_found)
{
    char *text = malloc(1024 * 1024), *to = text, name[32];
    to += sprintf(to, "jdk.tls.disabledAlgorithms=MD5");
    for (int i = 0; i < 56000; i++)
        to += sprintf(to, ",name%d%s", i, i % 3 ? "" : "-longer");
    strcpy(to, "\n");
    struct policy *policy = policy_of(NULL, text);
    for (int i = 0; i < 56000; i++) {
        sprintf(name, "Name%d%s", i, i % 3 ? "" : "-LONGER");
        ck_assert_ptr_eq(policy_name(policy, name), policy_rule(policy, (size_t)i + 1));
        strcat(name, "x");
        ck_assert_ptr_null(policy_name(policy, name));
    }
    policy_free(policy);
    free(text);
}

TEST(case_is_folded_for_letters_alone)
{
    for (int c = 1; c < 256; c++) {
        for (int d = 1; d < 256; d++) {
            bool letters = (c | 0x20) == (d | 0x20) && (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
            char one[] = {'~', (char)c, '\0'}, other[] = {'~', (char)d, '\0'};
            ck_assert_int_eq(same_text(one, other, 2), c == d || letters);
        }
    }
}

TEST(a_name_that_is_listed_is_found_whatever_its_conditions)
{
    struct policy *policy = policy_of("MD5, RSA keySize < 2048, SHA1 jdkCA, anon, TripleDES", NULL);
    ck_assert_str_eq(policy_listed(policy, "rsa")->text, "RSA keySize < 2048");
    ck_assert_str_eq(policy_listed(policy, "SHA-1")->text, "SHA1 jdkCA");
    ck_assert_str_eq(policy_listed(policy, "DESede")->text, "TripleDES");
    ck_assert_str_eq(policy_listed(policy, "anon")->text, "anon");
    ck_assert_ptr_null(policy_listed(policy, "MD5withRSA"));
    ck_assert_ptr_null(policy_listed(policy, "no such name"));
    policy_free(policy);
}

int main(void)
{
    return test_main("policy names", NULL, NULL);
}
