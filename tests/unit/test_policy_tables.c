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

START_TEST(every_mechanism_of_p11_kit_is_in_the_table_with_its_value)
{
    every_one_is_in_our_table(p11_kit_mechanisms);
}
END_TEST

#ifdef HAVE_NSS
START_TEST(every_mechanism_of_nss_is_in_the_table_with_its_value)
{
    every_one_is_in_our_table(nss_mechanisms);
}
END_TEST
#endif

START_TEST(no_number_and_no_name_stands_twice)
{
    for (size_t i = 0; i < mechanisms_count; i++) {
        ck_assert_ptr_eq(mechanism_find(mechanisms[i].number), &mechanisms[i]);
        for (const char *at = text_at(mechanisms[i].names); *at;
             at += strcspn(at, "|"), at += *at == '|') {
            char name[64];
            snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "|"), at);
            ck_assert_msg(strncmp(name, "CKM_", 4) == 0, "%s", name);
            ck_assert_uint_eq(ckm(name), mechanisms[i].number);
        }
    }
    ck_assert_uint_ge(mechanisms_count, 560);
}
END_TEST

START_TEST(a_mechanism_is_called_by_its_first_name_or_its_number)
{
    char text[48];

    ck_assert_str_eq(mechanism_name(0x320, text, sizeof text), "CKM_CAST5_KEY_GEN");
    ck_assert_str_eq(mechanism_name(0x80001234, text, sizeof text), "0x80001234");
    ck_assert_str_eq(mechanism_name(7, text, 8), "CKM_RIP");
}
END_TEST

START_TEST(the_der_of_every_curve_and_digest_is_its_oid)
{
    for (size_t i = 0; i < curves_count + digests_count; i++) {
        bool curve = i < curves_count;
        const char *oid = text_at(curve ? curves[i].oid : digests[i - curves_count].oid);
        const uint8_t *der = bytes_at(curve ? curves[i].der : digests[i - curves_count].der);
        size_t bytes = curve ? curves[i].der_bytes : digests[i - curves_count].der_bytes;
        char text[128], *to = text;
        unsigned long arc = 0;

        ck_assert_uint_eq(der[0], 6);
        ck_assert_uint_eq(der[1], bytes - 2);
        to += sprintf(to, "%d.%d", der[2] / 40, der[2] % 40);
        for (size_t j = 3; j < bytes; j++) {
            arc = arc << 7 | (der[j] & 0x7f);
            if (!(der[j] & 0x80)) {
                to += sprintf(to, ".%lu", arc);
                arc = 0;
            }
        }
        ck_assert_str_eq(text, oid);
    }
}
END_TEST

START_TEST(the_order_of_every_curve_has_the_bits_that_it_says)
{
    for (size_t i = 0; i < curves_count; i++) {
        static const int bits_of[] = {0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4};
        const char *order = text_at(curves[i].order);
        int top = order[0] <= '9' ? order[0] - '0' : order[0] - 'a' + 10;
        ck_assert_uint_eq(4 * (strlen(order) - 1) + (size_t)bits_of[top], curves[i].order_bits);
        /*
         * It tells curves apart, but not Ed25519 from X25519: those are one curve in two
         * coordinates.
         */
        for (size_t j = 0; j < i; j++) {
            if (strcmp(order, text_at(curves[j].order)) == 0)
                ck_assert_str_eq(strpbrk(text_at(curves[i].name), "0123456789"),
                                 strpbrk(text_at(curves[j].name), "0123456789"));
        }
    }
    ck_assert_uint_ge(curves_count, 57);
}
END_TEST

START_TEST(digests_name_mechanisms_that_are_made_of_them)
{
    for (size_t i = 0; i < digests_count; i++) {
        const struct mechanism *digest = mechanism_find(digests[i].mechanism);
        ck_assert_ptr_nonnull(digest);
        ck_assert_str_eq(text_at(digest->atoms), text_at(digests[i].name));
        if (digests[i].rsa_mechanism == NO_MECHANISM)
            continue;
        char atoms[64];
        snprintf(atoms, sizeof atoms, "%s|RSA", text_at(digests[i].name));
        ck_assert_str_eq(text_at(mechanism_find(digests[i].rsa_mechanism)->atoms), atoms);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_mechanism_of_p11_kit_is_in_the_table_with_its_value,
#ifdef HAVE_NSS
        every_mechanism_of_nss_is_in_the_table_with_its_value,
#endif
        no_number_and_no_name_stands_twice,
        a_mechanism_is_called_by_its_first_name_or_its_number,
        the_der_of_every_curve_and_digest_is_its_oid,
        the_order_of_every_curve_has_the_bits_that_it_says,
        digests_name_mechanisms_that_are_made_of_them,
    };
    return run_cases("policy tables", tests, sizeof tests / sizeof *tests);
}
