/* test_clones.c - which of the kernel's events tells of a clone, and that listening takes nothing from anybody. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../hang.h"
#include "random/clones.h"

#define IS_NEW(event) clones_is_new_generation(event, sizeof(event) - 1)

START_TEST(a_new_vm_generation_is_known_by_its_line)
{
    ck_assert(
        IS_NEW("change@/devices/platform/QEMUVGID:00\0ACTION=change\0NEW_VMGENID=1\0SEQNUM=7\0"));
    ck_assert(IS_NEW("NEW_VMGENID=1"));
    ck_assert(!IS_NEW("add@/devices/usb1\0ACTION=add\0SEQNUM=8\0"));
    ck_assert(!IS_NEW("change@/x\0NEW_VMGENID=11\0"));
    ck_assert(!IS_NEW("change@/x\0OLD_NEW_VMGENID=1\0"));
    ck_assert(!IS_NEW("change@/NEW_VMGENID=1/x\0"));
    ck_assert(!IS_NEW(""));
    /* Cut off, without its NUL. */
    ck_assert(!clones_is_new_generation("NEW_VMGENID=1", strlen("NEW_VMGENID=")));
}
END_TEST

START_TEST(a_descriptor_that_became_somebody_elses_is_left_alone)
{
    clones_listen();
    ck_assert(!clones_heard());
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    int others[8];
    for (int i = 0; i < 8; i++)
        ck_assert_int_ge(others[i] = open("/dev/zero", O_RDONLY | O_CLOEXEC), 0);
    ck_assert(!clones_heard());
    clones_unlisten();
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(close(others[i]), 0);
}
END_TEST

START_TEST(a_machine_without_the_device_has_no_generation)
{
    if (access("/dev/sysgenid", F_OK) != 0)
        ck_assert_ptr_null(clones_generation());
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("clones");
    Suite *suite = suite_create("clones");
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(tcase, HANG_S);
    tcase_add_test(tcase, a_new_vm_generation_is_known_by_its_line);
    tcase_add_test(tcase, a_descriptor_that_became_somebody_elses_is_left_alone);
    tcase_add_test(tcase, a_machine_without_the_device_has_no_generation);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
