/* test_header.c - proof-reads the table of mechanisms against a foreign header (HEADER), which ROWS names them of. */
#include HEADER

#include "policy_helper.h"

/* Headers have a name or two for what is no mechanism number. */
TEST(every_mechanism_of_the_header_is_in_the_table_with_its_value)
{
    static const struct {
        const char *name;
        unsigned long long number;
    } theirs[] = {
#define ROW(name) {#name, name},
#include ROWS
    };
    for (size_t i = 0; i < COUNT_OF(theirs); i++)
        ck_assert_msg(ckm(theirs[i].name) == theirs[i].number, "%s is 0x%llx", theirs[i].name,
                      theirs[i].number);
    ck_assert_uint_ge(COUNT_OF(theirs), 300);
}
