/* test_policy_items.c - single items of an inline list: what is taken, how, and what is refused. */
#include "policy_helper.h"

#define MD5   0x210
#define SHA_1 0x220

START_TEST(separators_are_harmless)
{
    static const char *const lists[] = {"MD5, SHA1",     "MD5,SHA1",          "MD5 ,  SHA1",
                                        "MD5,\tSHA1",    ",MD5,,SHA1,",       " MD5 , SHA1 ,",
                                        "\"MD5, SHA1\"", "  \" MD5,SHA1 \" ", "MD5,\n\tSHA1\n"};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct policy *policy = policy_of(lists[i]);
        ck_assert_uint_eq(policy_rules_count(policy), 2);
        ck_assert_str_eq(policy_rule(policy, 0)->text, "MD5");
        ck_assert_str_eq(policy_rule(policy, 1)->text, "SHA1");
        ck_assert_ptr_null(policy_rule(policy, 2));
        ck_assert_ptr_null(policy_mechanism(policy, 0x250));
        policy_free(policy);
    }
}
END_TEST

START_TEST(an_empty_list_denies_nothing)
{
    struct policy *policy = policy_of(" ,, ");
    ck_assert_uint_eq(policy_rules_count(policy), 0);
    for (uint64_t number = 0; number < 0x10000; number++)
        ck_assert_ptr_null(policy_mechanism(policy, number));
    ck_assert(!policy_has_key_rules(policy));
    policy_free(policy);
}
END_TEST

START_TEST(ten_thousand_items_on_a_line_are_as_two)
{
    char *list = malloc(200000), *to = list;
    for (int i = 0; i < 10000; i++)
        to += sprintf(to, "%s", i % 2 ? "MD5, " : "SHA1,");
    struct policy *policy = policy_of(list);
    ck_assert_uint_eq(policy_rules_count(policy), 10000);
    ck_assert_ptr_nonnull(policy_mechanism(policy, MD5));
    ck_assert_ptr_nonnull(policy_mechanism(policy, SHA_1));
    ck_assert_ptr_null(policy_mechanism(policy, 0x250));
    policy_free(policy);
    free(list);
}
END_TEST

START_TEST(case_does_not_matter)
{
    ck_assert(denies("md5", MD5));
    ck_assert(denies("ckm_MD5", MD5));
    ck_assert(denies("sHa-1", SHA_1));
    ck_assert(denies("md5WITHrsa", 5));
}
END_TEST

START_TEST(a_mechanism_may_be_named_by_number)
{
    static const char *const forms[] = {"0x80000142", "0X80000142", "2147483970",
                                        "CKM_VENDOR_DEFINED+0x142", "ckm_vendor_defined+322"};

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct policy *policy = policy_of(forms[i]);
        ck_assert_ptr_nonnull(policy_mechanism(policy, 0x80000142));
        ck_assert_ptr_null(policy_mechanism(policy, 0x142));
        ck_assert_ptr_null(policy_mechanism(policy, 0x80000143));
        policy_free(policy);
    }
    ck_assert(denies("0xCE534353", 0xce534353));
    ck_assert(denies("0xce534353", 0xce534353));
    ck_assert(denies("528", MD5));
    ck_assert(denies("0x210", MD5));
    ck_assert(denies("0", 0));
    ck_assert(denies("0x7000", 0x7000));
    ck_assert(denies("0x8000000000000001", 0x8000000000000001));
}
END_TEST

START_TEST(what_is_no_number_of_a_mechanism_is_refused)
{
    static const char *const forms[] = {"0x1FFFFFFFFFFFFFFFF",
                                        "-1",
                                        "+1",
                                        "80000142",
                                        "0x",
                                        "0xxyz",
                                        "0x80000142h",
                                        "18446744073709551616",
                                        "18446744073709551615",
                                        "0210",
                                        "0528",
                                        "CKM_VENDOR_DEFINED+",
                                        "CKM_VENDOR_DEFINED+-1",
                                        "CKM_VENDOR_DEFINED+0x80000142"};

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char should[64];
        snprintf(should, sizeof should, ": '%s'", forms[i]);
        ck_assert_msg(strstr(refusal_of(forms[i]), should) != NULL, "%s", policy_error);
        ck_assert_msg(strstr(policy_error, "mechanism number") != NULL, "%s", policy_error);
    }
    ck_assert_ptr_nonnull(strstr(refusal_of("1234x"), "no known algorithm"));
}
END_TEST

START_TEST(an_unknown_name_is_refused_with_file_line_item_and_the_nearest)
{
    ck_assert_str_eq(refusal_of("MD5, SHA257"), "proxy.module:7: x-disabled-algorithms has an item "
                                                "that is no known algorithm, mechanism or "
                                                "curve (nearest: SHA256): 'SHA257'");
    ck_assert_ptr_nonnull(strstr(refusal_of("CKM_SHA1"), "(nearest: CKM_SHA_1): 'CKM_SHA1'"));
    ck_assert_ptr_nonnull(strstr(refusal_of("secp192k2"), "(nearest: secp192k1)"));
    ck_assert_ptr_nonnull(strstr(refusal_of("something else"), "or curve: 'something else'"));
    ck_assert_ptr_nonnull(strstr(refusal_of("RSA keySise < 2048"), "'RSA keySise < 2048'"));
    ck_assert_ptr_nonnull(strstr(refusal_of("MD5withRAS"), "nearest: MD5withRSA"));
    ck_assert_ptr_nonnull(strstr(refusal_of("include"), "'include'"));
}
END_TEST

START_TEST(what_came_is_quoted_short_and_without_control_characters)
{
    char item[5000];
    memset(item, 'x', sizeof item);
    item[0] = '\x1b';
    item[1] = '\xff';
    item[sizeof item - 1] = '\0';
    refusal_of(item);
    ck_assert_uint_lt(strlen(policy_error), 300);
    ck_assert_ptr_nonnull(strstr(policy_error, ": '??xxx"));
    ck_assert_ptr_nonnull(strstr(policy_error, "xxx...'"));
}
END_TEST

START_TEST(malformed_conditions_are_refused)
{
    static const struct {
        const char *list, *should;
    } bad[] = {
        {"RSA keySize", "no <=, <, =="},
        {"RSA keySize 2048", "no <=, <, =="},
        {"RSA keySize = 2048", "no <=, <, =="},
        {"RSA keySize ~ 2048", "no <=, <, =="},
        {"RSA keySize <", "no number of bits"},
        {"RSA keySize < -1", "no number of bits"},
        {"RSA keySize < 99999999999", "no number of bits"},
        {"RSA keySize < 2048 &", "where a condition begins"},
        {"RSA keySize < 2048 keySize > 3", "no & between"},
        {"RSA keySize < 2048x", "no & between"},
        {"RSA keySize < 2048 & foo", "where a condition begins"},
        {"SHA1 usage", "no usage behind"},
        {"SHA1 usage & jdkCA", "no usage behind"},
        {"SHA1 denyAfter", "no date"},
        {"SHA1 denyAfter 2019-02-29", "no date"},
        {"SHA1 denyAfter 2019-13-01", "no date"},
        {"SHA1 denyAfter 2019-1-1", "no date"},
        {"SHA1 denyAfter 2019", "no date"},
        {"SHA1 denyAfter 0000-01-01", "no date"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(strstr(refusal_of(bad[i].list), bad[i].should) != NULL, "%s", policy_error);

    char many[2000] = "RSA keySize != 1";
    for (int i = 2; i < 60; i++)
        sprintf(many + strlen(many), " & keySize != %d", 2 * i);
    ck_assert_ptr_nonnull(strstr(refusal_of(many), "more conditions"));
}
END_TEST

START_TEST(a_date_denies_from_the_day_after)
{
    static const struct {
        const char *list;
        int64_t last_s; /* the last second in which it is permitted */
    } dated[] = {
        {"MD5 denyAfter 2019-01-01", 1546387199},
        {"MD5 denyAfter 2024-02-29", 1709251199},
        {"MD5 denyAfter 1970-01-01", 86399},
        {"MD5 denyAfter 1969-12-31", -1},
        {"MD5 denyAfter 2000-12-31", 978307199},
        {"MD5 denyafter 2000-12-31 & denyAfter 1999-01-01", 978307199},
    };

    for (size_t i = 0; i < sizeof dated / sizeof *dated; i++) {
        struct policy *before, *after;
        ck_assert_int_eq(policy_try(&before, dated[i].list, NULL, dated[i].last_s), 0);
        ck_assert_int_eq(policy_try(&after, dated[i].list, NULL, dated[i].last_s + 1), 0);
        ck_assert_ptr_null(policy_mechanism(before, MD5));
        ck_assert_ptr_null(policy_name(before, "MD5"));
        ck_assert_ptr_nonnull(policy_mechanism(after, MD5));
        ck_assert_ptr_nonnull(policy_name(after, "MD5"));
        policy_free(before);
        policy_free(after);
    }
}
END_TEST

START_TEST(words_of_tls_and_certificates_are_taken_without_effect)
{
    struct policy *policy =
        policy_of("anon, NULL, TLS_RSA_*, TLS_RSA_WITH_AES_128_CBC_SHA, DTLSv1.0, TLSv1.2, "
                  "SSLv2Hello, DH_anon, DHE_DSS, "
                  "rsa_pkcs1_sha1 usage HandshakeSignature, ecdsa_sha1 usage HandshakeSignature, "
                  "SHA1 jdkCA & usage TLSServer, SHA1 usage SignedJAR & denyAfter 2019-01-01, RSA "
                  "keySize < 9999 & jdkCA");
    for (uint64_t number = 0; number < 0x10000; number++)
        ck_assert_ptr_null(policy_mechanism(policy, number));
    ck_assert(!policy_has_key_rules(policy));
    ck_assert_uint_eq(policy_rules_count(policy), 14);
    policy_free(policy);
}
END_TEST

START_TEST(ecdh_means_cipher_suites_in_a_tls_key_and_mechanisms_elsewhere)
{
    struct policy *policy = policy_of_file_text("jdk.tls.disabledAlgorithms=ECDH\n");
    ck_assert_ptr_null(policy_mechanism(policy, 0x1050));
    ck_assert_ptr_nonnull(policy_name(policy, "ECDH"));
    policy_free(policy);

    policy = policy_of_file_text("jdk.certpath.disabledAlgorithms=ECDH\n");
    ck_assert_ptr_nonnull(policy_mechanism(policy, 0x1050));
    policy_free(policy);

    ck_assert_int_eq(policy_try_file_text(&policy, "ECDH", "jdk.tls.disabledAlgorithms=ECDH\n"), 0);
    ck_assert_ptr_nonnull(policy_mechanism(policy, 0x1050));
    policy_free(policy);

    policy =
        policy_of_file_text("jdk.tls.disabledAlgorithms=ECDH\njdk.jar.disabledAlgorithms=ecdh\n");
    ck_assert_ptr_nonnull(policy_mechanism(policy, 0x1050));
    policy_free(policy);
}
END_TEST

START_TEST(audit_is_handed_back)
{
    struct policy_sources sources = {
        .list = "MD5", .list_file = "f", .list_line = 1, .audit = true};
    struct policy *policy = NULL;
    char error[1];
    ck_assert_int_eq(policy_compile(&policy, &sources, error, sizeof error), 0);
    ck_assert(policy_is_audit(policy));
    ck_assert_ptr_nonnull(policy_mechanism(policy, MD5));
    policy_free(policy);
    policy = policy_of("MD5");
    ck_assert(!policy_is_audit(policy));
    policy_free(policy);
    ck_assert(!policy_is_audit(NULL));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        separators_are_harmless,
        an_empty_list_denies_nothing,
        ten_thousand_items_on_a_line_are_as_two,
        case_does_not_matter,
        a_mechanism_may_be_named_by_number,
        what_is_no_number_of_a_mechanism_is_refused,
        an_unknown_name_is_refused_with_file_line_item_and_the_nearest,
        what_came_is_quoted_short_and_without_control_characters,
        malformed_conditions_are_refused,
        a_date_denies_from_the_day_after,
        words_of_tls_and_certificates_are_taken_without_effect,
        ecdh_means_cipher_suites_in_a_tls_key_and_mechanisms_elsewhere,
        audit_is_handed_back,
    };
    return run_cases("policy items", tests, sizeof tests / sizeof *tests);
}
