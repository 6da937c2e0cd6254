/* test_policy_tables.c - our tables of mechanisms, curves and digests against other people's headers. */
#include "policy_helper.h"

#include "header_mechanisms.h"

/* Headers have a name or two for what is no mechanism number. */
static void every_one_is_in_our_table(const struct header_mechanism *theirs)
{
    size_t count = 0;

    for (; theirs->name; theirs++, count++)
        ck_assert_msg(ckm(theirs->name) == theirs->number, "%s is 0x%llx", theirs->name,
                      theirs->number);
    ck_assert_uint_ge(count, 300);
}

TEST(every_mechanism_of_p11_kit_is_in_the_table_with_its_value)
{
    every_one_is_in_our_table(p11_kit_mechanisms);
}

#ifdef HAVE_NSS
TEST(every_mechanism_of_nss_is_in_the_table_with_its_value)
{
    every_one_is_in_our_table(nss_mechanisms);
}
#endif

TEST(no_number_and_no_name_of_a_mechanism_stands_twice)
{
    for (size_t i = 0; i < MECHANISMS; i++) {
        const char *name = NULL;
        size_t len;
        ck_assert_ptr_eq(mechanism_find(mechanisms[i].number), &mechanisms[i]);
        ck_assert_msg(strncmp(mechanisms[i].names, "CKM_", 4) == 0, "%s", mechanisms[i].names);
        ck_assert(mechanisms[i].uses != 0);
        while (next_name(mechanisms[i].names, &name, &len))
            for (size_t j = 0; j < MECHANISMS && strncmp(name, "CKM_", 4) == 0; j++)
                ck_assert_int_eq(has_name(mechanisms[j].names, name, len), i == j);
    }
    ck_assert_uint_ge(MECHANISMS, 560);
}

TEST(a_mechanism_is_called_by_its_first_name_or_its_number)
{
    char text[48];

    ck_assert_str_eq(mechanism_name(0x320, text, sizeof text), "CKM_CAST5_KEY_GEN");
    ck_assert_str_eq(mechanism_name(0x80001234, text, sizeof text), "0x80001234");
    ck_assert_str_eq(mechanism_name(0x100000210, text, sizeof text), "0x100000210");
    ck_assert_str_eq(mechanism_name(7, text, 8), "CKM_RIP");
}

TEST(generators_are_known_by_their_keys)
{
    for (size_t i = 0; i < KEY_TYPES; i++) {
        ck_assert_ptr_eq(key_type_find(key_types[i].number), &key_types[i]);
        for (size_t j = 0; j < GENERATORS_MAX; j++) {
            uint64_t generator = key_types[i].generators[j];
            if (generator == NO_MECHANISM || (generator == 0 && j != 0))
                continue;
            ck_assert_ptr_eq(key_type_generated(generator), &key_types[i]);
            ck_assert_ptr_nonnull(strstr(mechanism_find(generator)->names, "_GEN"));
        }
    }
    ck_assert_ptr_null(key_type_generated(NO_MECHANISM));
    ck_assert_ptr_null(key_type_generated(ckm("CKM_RSA_PKCS")));
}

/* It tells curves apart, but not a curve from its twin in other coordinates. */
TEST(curves_of_one_order_are_twins)
{
    for (size_t i = 0; i < CURVES; i++)
        for (size_t j = 0; j < i; j++) {
            const char *one = strpbrk(curves[i].names, "0123456789");
            const char *other = strpbrk(curves[j].names, "0123456789");
            if (strcmp(curves[i].order, curves[j].order) == 0)
                ck_assert_int_eq(strncmp(one, other, 3), 0);
        }
    ck_assert_uint_ge(CURVES, 78);
}

TEST(digests_name_mechanisms_that_are_made_of_them)
{
    for (size_t i = 0; i < DIGESTS; i++) {
        const struct digest *digest = &digests[i];
        const char *atom = strchr(mechanism_find(digest->mechanism)->names, '|') + 1;
        const uint64_t made[] = {digest->rsa, digest->pss, digest->ml_dsa, digest->slh_dsa};
        char hmac[64];

        ck_assert_ptr_eq(digest_find(digest->mechanism), digest);
        for (size_t j = 0; j < COUNT_OF(made); j++)
            if (made[j] != 0)
                ck_assert(has_name(mechanism_find(made[j])->names, atom, strcspn(atom, "|")));
        snprintf(hmac, sizeof hmac, "Hmac%.*s", (int)strcspn(atom, "|"), atom);
        ck_assert_msg(has_name(mechanism_find(digest->hmac)->names, hmac, strlen(hmac)), "%s",
                      hmac);
    }
}

int main(void)
{
    return test_main("policy tables", NULL, NULL);
}
