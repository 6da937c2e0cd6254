/* test_policy_items.c - single items of an inline list: what is taken, how, and what is refused. */
#include "policy_helper.h"

#define MD5   0x210
#define SHA_1 0x220

TEST(separators_and_case_are_harmless)
{
    static const char *const lists[] = {"MD5, SHA1",     "md5,sha-1",        "MD5 ,  SHA1",
                                        "MD5,\tSHA1",    ",MD5,,SHA1,",      " ckm_MD5 , SHA1 ,",
                                        "\"MD5, SHA1\"", "  \" MD5,Sha \" ", "MD5,\n\tSHA1\n"};

    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        struct policy *policy = policy_of(lists[i], NULL);
        ck_assert_uint_eq(count_of(policy).items, 2);
        ck_assert_ptr_nonnull(denied(policy, MD5));
        ck_assert_ptr_nonnull(denied(policy, SHA_1));
        ck_assert_ptr_null(denied(policy, 0x250));
        policy_free(policy);
    }
}

TEST(no_item_at_all_is_no_policy)
{
    ck_assert_ptr_null(policy_of("", NULL));
    ck_assert_ptr_null(policy_of(" ,, ", NULL));
    ck_assert_ptr_null(policy_of("\"\"", NULL));
    ck_assert_ptr_null(policy_of(NULL, NULL));
}

TEST(ten_thousand_items_on_a_line_are_as_two)
{
    char *list = malloc(200000), *to = list;
    for (int i = 0; i < 10000; i++)
        to += sprintf(to, "%s", i % 2 ? "MD5, " : "SHA1,");
    struct policy *policy = policy_of(list, NULL);
    ck_assert_uint_eq(count_of(policy).items, 10000);
    ck_assert_uint_eq(count_of(policy).no_effect, 9998);
    ck_assert_ptr_eq(denied(policy, MD5), policy_rule(policy, 1));
    policy_free(policy);
    free(list);
}

TEST(a_mechanism_may_be_named_by_number)
{
    static const struct {
        const char *list;
        uint64_t number;
    } forms[] = {{"0x80000142", 0x80000142},
                 {"0X80000142", 0x80000142},
                 {"2147483970", 0x80000142},
                 {"0xCE534353", 0xce534353},
                 {"528", MD5},
                 {"0x210", MD5},
                 {"0", 0},
                 {"0x7000", 0x7000},
                 {"0x8000000000000210", 0x8000000000000210},
                 {"0x100000210", 0x100000210}};

    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        struct policy *policy = policy_of(forms[i].list, NULL);
        ck_assert_ptr_nonnull(denied(policy, forms[i].number));
        ck_assert_uint_eq(count_of(policy).mechanisms, 1);
        ck_assert_ptr_null(denied(policy, forms[i].number ^ 0x80000000));
        ck_assert_ptr_null(denied(policy, forms[i].number + 1));
        policy_free(policy);
    }
}

TEST(what_is_no_number_of_a_mechanism_is_refused)
{
    static const char *const forms[] = {
        "0x1FFFFFFFFFFFFFFFF",  "80000142",   "0x", "0xxyz", "0210", "0528", "18446744073709551616",
        "18446744073709551615", "0x80000142h"};

    for (size_t i = 0; i < COUNT_OF(forms); i++)
        refuses(forms[i], NULL, "mechanism number");
    refuses("1234x", NULL, "no known algorithm");
}

TEST(an_unknown_name_is_refused_with_file_line_item_and_the_nearest)
{
    static const char *const unknown[][2] = {{"CKM_SHA1", "(nearest: CKM_SHA_1): 'CKM_SHA1'"},
                                             {"secp192k2", "(nearest: secp192k1)"},
                                             {"something else", "or curve: 'something else'"},
                                             {"RSA keySise < 2048", "'RSA keySise < 2048'"},
                                             {"MD5withRAS", "nearest: MD5withRSA"},
                                             {"include", "'include'"},
                                             /* What looks like a list, and is none. */
                                             {"MD5 SHA1", "'MD5 SHA1'"},
                                             {"\"MD5\", \"SHA1\"", "'MD5\"'"},
                                             {"MD5,\xc2\xa0SHA1", "'\\xc2\\xa0SHA1'"},
                                             {"MD5 # no more", "curve: 'MD5 # no more'"},
                                             {"MessageDigest.MD5", "'MessageDigest.MD5'"}};

    refuses("MD5, SHA257", NULL,
            "proxy.module:7: x-disabled-algorithms has no known algorithm, mechanism or curve "
            "(nearest: SHA256): 'SHA257'");
    for (size_t i = 0; i < COUNT_OF(unknown); i++)
        refuses(unknown[i][0], NULL, unknown[i][1]);
}

TEST(what_came_is_quoted_short_and_without_control_characters)
{
    char item[5000];
    memset(item, 'x', sizeof item);
    item[0] = '\x1b';
    item[sizeof item - 1] = '\0';
    refuses(item, NULL, "'\\x1bxxx");
    ck_assert_uint_lt(strlen(policy_error.text), 300);
}

TEST(malformed_conditions_are_refused)
{
    static const char *const bad[][2] = {
        {"RSA keySize", "no <=, <, =="},
        {"RSA keySize 2048", "no <=, <, =="},
        {"RSA keySize = 2048", "no <=, <, =="},
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
    char many[2000] = "RSA keySize != 1";

    for (size_t i = 0; i < COUNT_OF(bad); i++)
        refuses(bad[i][0], NULL, bad[i][1]);
    for (int i = 2; i < 60; i++)
        sprintf(many + strlen(many), " & keySize != %d", 2 * i);
    refuses(many, NULL, "more conditions");
}

TEST(a_date_denies_from_the_day_after)
{
    static const struct {
        const char *list;
        int64_t last_s; /* the last second in which it is permitted */
    } dated[] = {
        {"MD5 denyAfter 2019-01-01", 1546387199},
        {"MD5 denyAfter 2024-02-29", 1709251199},
        {"MD5 denyAfter 1970-01-01", 86399},
        {"MD5 denyAfter 1969-12-31", -1},
        {"MD5 denyafter 2000-12-31 & denyAfter 1999-01-01", 978307199},
    };

    for (size_t i = 0; i < COUNT_OF(dated); i++) {
        struct policy *before, *after;
        ck_assert_int_eq(policy_try(&before, dated[i].list, NULL, dated[i].last_s), 0);
        ck_assert_int_eq(policy_try(&after, dated[i].list, NULL, dated[i].last_s + 1), 0);
        ck_assert_ptr_null(denied(before, MD5));
        ck_assert_ptr_null(policy_name(before, "MD5"));
        ck_assert_str_eq(policy_no_effect(policy_rule(before, 0)), "its date is to come");
        ck_assert_ptr_nonnull(denied(after, MD5));
        ck_assert_ptr_nonnull(policy_name(after, "MD5"));
        policy_free(before);
        policy_free(after);
    }
}

/* Each beside MD5, because a list of nothing else is refused. */
TEST(what_has_no_effect_says_why)
{
    static const char *const items[][2] = {
        {"anon", "TLS cipher suites"},
        {"NULL", "TLS cipher suites"},
        {"TLS_RSA_*", "a TLS cipher suite"},
        {"TLS_RSA_WITH_AES_128_CBC_SHA", "a TLS cipher suite"},
        {"DHE_DSS", "TLS cipher suites"},
        {"AES_128_CBC", "TLS cipher suites"},
        {"CHACHA20_POLY1305", "TLS cipher suites"},
        {"DTLSv1.0", "a protocol version"},
        {"TLSv1.2", "a protocol version"},
        {"ffdhe2048", "a TLS group"},
        {"rsa_pkcs1_sha1 usage HandshakeSignature", "a TLS signature scheme"},
        {"SHA1 jdkCA & usage TLSServer", "certificates"},
        {"RSA keySize < 9999 & jdkCA", "certificates"},
        {"RSA keySize < 64 & keySize > 64", "no size meets"},
        {"ML-KEM keySize < 1024", "no size in bits"},
        {"MD5withECDSA", "no mechanism is this combination"},
        {"AES/ECB", "no mechanism is this combination"},
        {"SHA256withRSA/PSS", "no mechanism is this combination"},
        {"AES_128", "write AES keySize == 128"},
        {"md5", "an earlier item is the same"},
    };

    for (size_t i = 0; i < COUNT_OF(items); i++) {
        char list[128];
        snprintf(list, sizeof list, "MD5, %s", items[i][0]);
        struct policy *policy = policy_of(list, NULL);
        const char *why = policy_no_effect(policy_rule(policy, 1));
        ck_assert_msg(why != NULL && strstr(why, items[i][1]) != NULL, "%s: %s", list, why);
        ck_assert_uint_eq(count_of(policy).no_effect, 1);
        ck_assert(!policy_has_key_rules(policy));
        for (uint64_t number = 0; number < 0x8000; number++)
            ck_assert(denied(policy, number) == NULL ||
                      denied(policy, number) == policy_rule(policy, 0));
        policy_free(policy);
        if (i < 18)
            refuses(items[i][0], NULL, "lists nothing that takes effect (");
    }
    policy_free(policy_of("MD5 denyAfter 2099-01-01", NULL));
}

TEST(a_padding_that_java_does_itself_is_refused_with_what_to_write)
{
    refuses("MD5, AES/CBC/PKCS5Padding", NULL, "write AES/CBC, as an example, or CKM_AES_CBC_PAD");
    refuses("aes/ecb/pkcs5padding", NULL, "a padding that Java does itself");
    refuses("Foo/CBC/PKCS5Padding", NULL, "no known algorithm");
    struct policy *policy =
        policy_of(NULL, "jdk.security.disabledAlgorithms=MD5,DESede/CBC/PKCS5Padding\n");
    ck_assert_ptr_nonnull(strstr(policy_warnings, "a padding that Java does itself"));
    ck_assert_ptr_nonnull(strstr(policy_no_effect(policy_rule(policy, 1)), "Java pads itself"));
    policy_free(policy);
    ck_assert(denies("AES/CBC/NoPadding", NULL, ckm("CKM_AES_CBC")));
    ck_assert(denies("RSA/ECB/PKCS1Padding", NULL, ckm("CKM_RSA_PKCS")));
}

TEST(audit_is_handed_back)
{
    struct policy_sources sources = {
        .list = "MD5", .list_from = "f", .list_line = 1, .audit = true};
    struct policy *policy = NULL;
    ck_assert_int_eq(policy_compile(&policy, &sources, &policy_error), 0);
    ck_assert(policy_is_audit(policy));
    ck_assert_ptr_nonnull(denied(policy, MD5));
    policy_free(policy);
    policy = policy_of("MD5", NULL);
    ck_assert(!policy_is_audit(policy) && !policy_is_audit(NULL));
    policy_free(policy);
}

int main(void)
{
    return test_main("policy items", NULL, NULL);
}
