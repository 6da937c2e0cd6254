/* test_policy_names.c - the name check: what the JDK would say of a name, found in one lookup. */
#include "policy_helper.h"

#include "policy/policy_names.h"

static struct policy *names_56(void)
{
    struct policy *policy = NULL;
    ck_assert_msg(policy_try(&policy, NULL, "names-56.security", NOW_S) == 0, "%s", policy_error);
    return policy;
}

START_TEST(the_56_names_deny_what_the_jdk_denies)
{
    static const char *const names[] = {"MD5withRSA",
                                        "md5WithRsa",
                                        "DES",
                                        "DES/CBC/PKCS5Padding",
                                        "3DES_EDE_CBC",
                                        "RC4",
                                        "PBEWithMD5AndDES",
                                        "secp256k1",
                                        "NULL",
                                        "null",
                                        "sslv3",
                                        "SSLv3",
                                        "anon",
                                        "X9.62 c2tnb191v1",
                                        "brainpoolP512r1",
                                        "des/ecb/nopadding"};
    struct policy *policy = names_56();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_msg(policy_name(policy, names[i]) != NULL, "%s", names[i]);
    policy_free(policy);
}
END_TEST

START_TEST(the_56_names_permit_what_the_jdk_permits)
{
    static const char *const names[] = {"SHA1withRSA",
                                        "MD5",
                                        "MD5withECDSA",
                                        "DESede/CBC/PKCS5Padding",
                                        "ECDH",
                                        "ECDHE",
                                        "EC",
                                        "DH",
                                        "TLS1.3",
                                        "TLSv1.3",
                                        "HmacMD5",
                                        "AES/ECB/NoPadding",
                                        "DSA",
                                        "RSA",
                                        "",
                                        "/",
                                        "with",
                                        "DESede",
                                        "secp256r1",
                                        "no such name"};
    struct policy *policy = names_56();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_msg(policy_name(policy, names[i]) == NULL, "%s", names[i]);
    policy_free(policy);
}
END_TEST

START_TEST(two_names_of_one_algorithm_are_denied_together)
{
    struct policy *policy = names_56();
    ck_assert_str_eq(policy_name(policy, "ARCFOUR")->text, "RC4");
    policy_free(policy);
    policy = policy_of("SHA1");
    ck_assert_ptr_nonnull(policy_name(policy, "SHA-1"));
    ck_assert_ptr_nonnull(policy_name(policy, "SHA"));
    ck_assert_ptr_nonnull(policy_name(policy, "SHA1withRSA"));
    ck_assert_ptr_nonnull(policy_name(policy, "SHA-1withFoo"));
    ck_assert_ptr_null(policy_name(policy, "HmacSHA1"));
    ck_assert_ptr_null(policy_name(policy, "SHA256withRSA"));
    policy_free(policy);
}
END_TEST

START_TEST(a_name_tells_the_entry_that_denies_it)
{
    struct policy *policy = names_56();
    ck_assert_str_eq(policy_name(policy, "PBEWithMD5AndDES")->text, "DES");
    ck_assert_uint_eq(policy_name(policy, "PBEWithMD5AndDES")->line, 2);
    ck_assert_str_eq(policy_name(policy, "brainpoolp512R1")->text, "brainpoolP512r1");
    ck_assert_uint_eq(policy_name(policy, "brainpoolp512R1")->line, 10);
    policy_free(policy);
}
END_TEST

START_TEST(unknown_names_are_taken_apart)
{
    struct policy *policy = policy_of("MD5, DES");
    ck_assert_ptr_nonnull(policy_name(policy, "MD5withFoo"));
    ck_assert_ptr_nonnull(policy_name(policy, "FooANDmd5"));
    ck_assert_ptr_nonnull(policy_name(policy, "FooWithBarInDES"));
    ck_assert_ptr_nonnull(policy_name(policy, "DES/Foo/Bar"));
    ck_assert_ptr_nonnull(policy_name(policy, "x/y/des"));
    ck_assert_ptr_nonnull(policy_name(policy, "MD5andsomethingthatisquitelongindeed"));
    /* Short ones too, which are not all looked through. */
    ck_assert_ptr_nonnull(policy_name(policy, "DES/x"));
    ck_assert_ptr_nonnull(policy_name(policy, "MD5inx"));
    ck_assert_ptr_nonnull(policy_name(policy, "xANDdes"));
    ck_assert_ptr_nonnull(policy_name(policy, "DESwithx"));
    ck_assert_ptr_nonnull(policy_name(policy, "xWithDES"));
    ck_assert_ptr_null(policy_name(policy, "wi/DESx"));
    ck_assert_ptr_null(policy_name(policy, "DESX/Foo/Bar"));
    ck_assert_ptr_null(policy_name(policy, "MD5x"));
    ck_assert_ptr_null(policy_name(policy, "FooPaddingDES"));
    policy_free(policy);
}
END_TEST

START_TEST(sha_512_256_is_no_sha_512)
{
    struct policy *policy = policy_of("SHA-512");
    ck_assert_ptr_null(policy_name(policy, "SHA-512/256"));
    ck_assert_ptr_null(policy_name(policy, "SHA512/224withRSA"));
    ck_assert_ptr_nonnull(policy_name(policy, "SHA512withRSA"));
    policy_free(policy);
}
END_TEST

START_TEST(names_and_numbers_of_mechanisms_answer_as_the_mechanism)
{
    struct policy *policy = policy_of("MD5, 0x80001234");
    ck_assert_ptr_nonnull(policy_name(policy, "CKM_MD5_RSA_PKCS"));
    ck_assert_ptr_nonnull(policy_name(policy, "ckm_md5"));
    ck_assert_ptr_nonnull(policy_name(policy, "0x210"));
    ck_assert_ptr_nonnull(policy_name(policy, "528"));
    ck_assert_ptr_nonnull(policy_name(policy, "0x80001234"));
    ck_assert_ptr_null(policy_name(policy, "0x80001235"));
    ck_assert_ptr_null(policy_name(policy, "CKM_SHA_1"));
    ck_assert_ptr_null(policy_name(policy, "99999999999999999999999"));
    policy_free(policy);
}
END_TEST

START_TEST(fifty_six_thousand_names_are_each_found)
{
    char *text = malloc(1024 * 1024), *to = text, name[32];
    to += sprintf(to, "jdk.tls.disabledAlgorithms=MD5");
    for (int i = 0; i < 56000; i++)
        to += sprintf(to, ",name%d%s", i, i % 3 ? "" : "-longer");
    strcpy(to, "\n");
    struct policy *policy = policy_of_file_text(text);
    for (int i = 0; i < 56000; i++) {
        sprintf(name, "Name%d%s", i, i % 3 ? "" : "-LONGER");
        ck_assert_ptr_eq(policy_name(policy, name), policy_rule(policy, (size_t)i + 1));
        strcat(name, "x");
        ck_assert_ptr_null(policy_name(policy, name));
    }
    policy_free(policy);
    free(text);
}
END_TEST

START_TEST(case_is_folded_for_letters_alone)
{
    /* Names of all lengths, so that every way of reading one is taken. */
    static const size_t lengths[] = {1, 3, 4, 6, 8, 9, 19};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t len = lengths[i];
        char one[20], other[20];
        struct names *names = NULL;

        ck_assert_int_eq(names_create(&names), 0);
        memset(one, '~', sizeof one);
        memset(other, '~', sizeof other);
        for (int c = 1; c < 256; c++) {
            for (int d = 1; d < 256; d++) {
                bool letters = (c | 0x20) == (d | 0x20) && (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
                one[len - 1] = (char)c;
                other[len - 1] = (char)d;
                name_id id = names_add(names, one, len);
                bool same = names_find(names, other, len) == id;
                ck_assert_msg(same == (c == d || letters), "%zu: %d %d", len, c, d);
            }
        }
        names_free(names);
    }
}
END_TEST

START_TEST(parts_are_split_as_java_splits_them)
{
    static const struct {
        const char *name, *parts;
    } splits[] = {{"SHA1withRSAandMGF1", "SHA1|RSA|MGF1|"},
                  {"PBEWithMD5AndDES", "PBE|MD5|DES|"},
                  {"RSA/ECB/OAEPWithSHA-1AndMGF1Padding", "RSA|ECB|OAEP|SHA-1|MGF1Padding|"},
                  {"AES/CBC/PKCS5Padding", "AES|CBC|PKCS5Padding|"},
                  {"SHA1withDSAinP1363Format", "SHA1|DSA|P1363Format|"},
                  {"//AES//", "AES|"},
                  {"within", ""},
                  {"PADDIN", "PADDIN|"},
                  {"", ""}};

    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        struct name_parts parts = {splits[i].name, strlen(splits[i].name)};
        char joined[128] = "";
        const char *part;
        size_t len;
        while (name_parts_next(&parts, &part, &len)) {
            strncat(joined, part, len);
            strcat(joined, "|");
        }
        ck_assert_str_eq(joined, splits[i].parts);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_56_names_deny_what_the_jdk_denies,
        the_56_names_permit_what_the_jdk_permits,
        two_names_of_one_algorithm_are_denied_together,
        a_name_tells_the_entry_that_denies_it,
        unknown_names_are_taken_apart,
        sha_512_256_is_no_sha_512,
        names_and_numbers_of_mechanisms_answer_as_the_mechanism,
        fifty_six_thousand_names_are_each_found,
        case_is_folded_for_letters_alone,
        parts_are_split_as_java_splits_them,
    };
    return run_cases("policy names", tests, sizeof tests / sizeof *tests);
}
