/* test_policy_items.c - items of an inline list: what is taken, how, and what is refused; and the name check. */
#include "policy_helper.h"

#define MD5   0x210
#define SHA_1 0x220

TEST(separators_and_case_are_harmless)
{
    static const char *const lists[] = {"md5,sha-1",         "MD5 ,\tSHA1",   ",MD5,,SHA1,",
                                        " ckm_MD5 , SHA1 ,", "\"MD5, SHA1\"", "  \" MD5,Sha \" ",
                                        "MD5,\n\tSHA1\n"};
    static const char *const empty[] = {"", " ,, ", "\"\"", NULL};

    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        struct policy *policy = policy_of(lists[i], NULL);
        ck_assert_uint_eq(count_of(policy).items, 2);
        ck_assert_ptr_nonnull(denied(policy, MD5));
        ck_assert_ptr_nonnull(denied(policy, SHA_1));
        ck_assert_ptr_null(denied(policy, 0x250));
        policy_free(policy);
    }
    for (size_t i = 0; i < COUNT_OF(empty); i++)
        ck_assert_ptr_null(policy_of(empty[i], NULL));
}

TEST(a_mechanism_may_be_named_by_number)
{
    static const struct {
        const char *list;
        uint64_t number;
    } forms[] = {{"0X80000142", 0x80000142},
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

TEST(what_is_no_item_is_refused_with_file_line_item_and_what_would_be_right)
{
    static const char *const bad[][2] = {
        {"MD5, SHA257",
         "proxy.module:7: x-disabled-algorithms has no known algorithm, mechanism or curve "
         "(nearest: SHA256): 'SHA257'"},
        {"secp192k2", "(nearest: secp192k1)"},
        {"something else", "or curve: 'something else'"},
        {"MD5withRAS", "nearest: MD5withRSA"},
        {"include", "'include'"},
        {"include other", "'include other'"},
        {"MessageDigest.MD5", "'MessageDigest.MD5'"},
        {"Foo/CBC/PKCS5Padding", "no known algorithm"},
        {"1234x", "no known algorithm"},
        /* What looks like a list, and is none. */
        {"MD5 SHA1", "'MD5 SHA1'"},
        {"\"MD5\", \"SHA1\"", "'MD5\"'"},
        {"MD5,\xc2\xa0SHA1", "'\\xc2\\xa0SHA1'"},
        {"MD5 # no more", "curve: 'MD5 # no more'"},
        /* Java pads itself. */
        {"MD5, AES/CBC/PKCS5Padding", "write AES/CBC, as an example, or CKM_AES_CBC_PAD"},
        {"aes/ecb/pkcs5padding", "a padding that Java does itself"},
        /* Numbers. */
        {"0x1FFFFFFFFFFFFFFFF", "mechanism number"},
        {"80000142", "mechanism number"},
        {"0x", "mechanism number"},
        {"0xxyz", "mechanism number"},
        {"0528", "mechanism number"},
        {"18446744073709551616", "mechanism number"},
        {"18446744073709551615", "mechanism number"},
        {"0x80000142h", "mechanism number"},
        /* Conditions. */
        {"RSA keySise < 2048", "'RSA keySise < 2048'"},
        {"RSA keySize", "no <=, <, =="},
        {"RSA keySize = 2048", "no <=, <, =="},
        {"RSA keySize <", "no number of bits"},
        {"RSA keySize < -1", "no number of bits"},
        {"RSA keySize < 99999999999", "no number of bits"},
        {"RSA keySize < 2048 &", "where a condition begins"},
        {"RSA keySize < 2048 keySize > 3", "no & between"},
        {"RSA keySize < 2048x", "no & between"},
        {"RSA keySize != 1 & keySize != 2", "more than one !="},
        {"SHA1 usage & jdkCA", "no usage behind"},
        {"SHA1 denyAfter", "no date"},
        {"SHA1 denyAfter 2019-02-29", "no date"},
        {"SHA1 denyAfter 2019-1-1", "no date"},
        {"SHA1 denyAfter 0000-01-01", "no date"},
    };
    char item[5000];

    for (size_t i = 0; i < COUNT_OF(bad); i++)
        refuses(bad[i][0], NULL, bad[i][1]);
    memset(item, 'x', sizeof item);
    item[0] = '\x1b';
    item[sizeof item - 1] = '\0';
    refuses(item, NULL, "'\\x1bxxx");
    ck_assert_uint_lt(strlen(policy_error.text), 300);
}

TEST(a_date_denies_from_the_day_after)
{
    static const struct {
        const char *list;
        int64_t last_s; /* the last second in which it is permitted */
    } dated[] = {
        {"MD5 denyAfter 2024-02-29", 1709251199},
        {"MD5 denyAfter 1969-12-31", -1},
        {"MD5 denyafter 2000-12-31 & denyAfter 1999-01-01", 978307199},
    };

    for (size_t i = 0; i < COUNT_OF(dated); i++) {
        struct policy *before, *after;
        ck_assert_int_eq(policy_try(&before, dated[i].list, NULL, dated[i].last_s), 0);
        ck_assert_int_eq(policy_try(&after, dated[i].list, NULL, dated[i].last_s + 1), 0);
        ck_assert_ptr_null(denied(before, MD5));
        ck_assert_ptr_null(policy_name(before, "MD5"));
        ck_assert_str_eq(policy_rule(before, 0)->no_effect, "its date is to come");
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
        {"TLS_RSA_*", "a TLS cipher suite"},
        {"TLS_RSA_WITH_AES_128_CBC_SHA", "a TLS cipher suite"},
        {"AES_128_CBC", "TLS cipher suites"},
        {"DTLSv1.0", "a protocol version"},
        {"ffdhe2048", "a TLS group"},
        {"rsa_pkcs1_sha1 usage HandshakeSignature", "a TLS signature scheme"},
        {"SHA1 jdkCA & usage TLSServer", "certificates"},
        {"RSA keySize < 9999 & jdkCA", "certificates"},
        {"RSA keySize < 64 & keySize > 64", "no size meets"},
        {"RSA keySize == 64 & keySize != 64", "no size meets"},
        {"ML-KEM keySize < 1024", "no size in bits"},
        {"MD5withECDSA", "no mechanism is this combination"},
        {"SHA256withRSA/PSS", "no mechanism is this combination"},
        {"AES_128", "write AES keySize == 128"},
    };

    for (size_t i = 0; i < COUNT_OF(items); i++) {
        char list[128];
        snprintf(list, sizeof list, "MD5, %s", items[i][0]);
        struct policy *policy = policy_of(list, NULL);
        const char *why = policy_rule(policy, 1)->no_effect;
        ck_assert_msg(why != NULL && strstr(why, items[i][1]) != NULL, "%s: %s", list, why);
        ck_assert_uint_eq(count_of(policy).no_effect, 1);
        ck_assert(!policy_looks_at_keys_of(policy, NO_MECHANISM));
        for (size_t j = 0; j < mechanism_count; j++) {
            const struct policy_rule *rule = denied(policy, mechanisms[j].number);
            if (rule != NULL && rule != policy_rule(policy, 0))
                ck_abort_msg("%s denies %s", list, mechanisms[j].names);
        }
        policy_free(policy);
        refuses(items[i][0], NULL, "lists nothing that takes effect (");
    }
    policy_free(policy_of("MD5 denyAfter 2099-01-01", NULL));
}

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
    struct policy *policy = policy_of("SHA1, DES, SHA-512, 0x80001234", NULL);
    judges_names(policy, true,
                 "SHA-1|SHA|SHA1withRSA|SHA-1withFoo|FooANDsha1|FooWithBarInDES|DES/Foo/Bar|"
                 "x/y/des|DES/x|SHA1inx|xANDdes|DESwithx|xWithDES|SHA512withRSA|"
                 "CKM_SHA1_RSA_PKCS|ckm_sha_1|0x220|544|0x80001234");
    judges_names(policy, false,
                 "HmacSHA1|SHA256withRSA|wi/DESx|DESX/Foo/Bar|SHA1x|FooPaddingDES|SHA-512/256|"
                 "SHA512/224withRSA|0x80001235|CKM_MD5|99999999999999999999999");
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
        if (policy_name(policy, name) != policy_rule(policy, (size_t)i + 1))
            ck_abort_msg("%s", name);
        strcat(name, "x");
        if (policy_name(policy, name) != NULL)
            ck_abort_msg("%s", name);
    }
    policy_free(policy);
    free(text);
}

int main(void)
{
    return test_main("policy items", NULL, NULL);
}
