/* test_errors.c - a configuration that is not right is one message and CKR_GENERAL_ERROR, never half in force. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "@" stands for the folder of the test, "%" for our targets', "!" for the proxy itself. */
static const struct {
    const char *settings;
    const char *said; /* part of the message */
} wrongs[] = {
    {"", "x-target"},
    {"x-target: @/missing.so", "missing.so"},
    {"x-target: @", "is"},
    {"x-target: @/config", "config"},
    {"x-target: libs/relative.so", "relative.so"},
    {"x-target: no-such-module-anywhere.so", "no-such-module-anywhere.so"},
    {"x-target: /lib/x86_64-linux-gnu/libm.so.6", "libm.so.6"},
    {"x-target: !", "itself"},
    {"x-target: @/link.so", "itself"},
    {"x-target: %/scripted.so\nx-pol: on", "x-pol"},
    {"x-target: %/scripted.so\nx-disabled-algorithms: MD5, SHA9", "config:2:"},
    {"x-target: %/scripted.so\nx-disabled-algorithms: MD5, SHA9", "SHA9"},
    {"x-target: %/scripted.so\nx-disabled-algorithms-file: @/missing", "missing"},
    {"x-target: %/scripted.so\nx-disabled-algorithms-file: @", "is"},
    {"x-target: %/scripted.so\nx-disabled-algorithms: MD5\nx-policy: "
     "audit\nx-disabled-algorithms-file: @/no",
     "/no"},
};

static void expand(const char *text, char *out)
{
    for (; *text != '\0'; text++) {
        const char *word = *text == '@'   ? root
                           : *text == '%' ? getenv("TEST_TARGETS")
                           : *text == '!' ? getenv("TEST_MODULE")
                                          : NULL;
        if (word != NULL)
            out += sprintf(out, "%s", word);
        else
            *out++ = *text;
    }
    *out = '\0';
}

static void configured(const char *settings)
{
    char expanded[4096];
    expand(settings, expanded);
    ck_assert_int_eq(symlink(getenv("TEST_MODULE"), in_root("link.so")), 0);
    capture_stderr();
    proxy_configured(expanded);
}

TEST_EACH(each_wrong_configuration_is_a_message_and_a_general_error, 0,
          (int)(sizeof wrongs / sizeof *wrongs))
{
    CK_INFO info;
    configured(wrongs[_i].settings);
    ck_assert_uint_eq(messages_with(""), 0); /* the list alone says nothing */
    EXPECT(fn->C_Initialize(&os_locking), CKR_GENERAL_ERROR);
    ck_assert_msg(messages_with("") == 1, "%u messages for: %s", messages_with(""),
                  wrongs[_i].settings);
    ck_assert_msg(messages_with(wrongs[_i].said) == 1, "no word of '%s'", wrongs[_i].said);
    EXPECT(fn->C_GetInfo(&info), CKR_CRYPTOKI_NOT_INITIALIZED);
    EXPECT(fn->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
}

TEST(a_wrong_configuration_can_be_mended_without_unloading)
{
    configured("x-target: @/missing.so");
    EXPECT(fn->C_Initialize(&os_locking), CKR_GENERAL_ERROR);
    copy_of(target_path("scripted"), "missing.so");
    EXPECT(fn->C_Initialize(&os_locking), CKR_OK);
}

/* A copy is another object: each copy's target is the other. */
TEST(a_copy_of_the_proxy_as_target_ends_in_an_error)
{
    copy_of(getenv("TEST_MODULE"), "copy.so");
    configured("x-target: @/copy.so");
    ck_assert_uint_ne(fn->C_Initialize(&os_locking), CKR_OK);
}

/* A daemon that gave up its rights, or sees another root, starts anew in the middle of its life. The token's own
 * module needs no file for that. _i: whether the file was named by the environment or found. */
TEST_EACH(a_configuration_that_went_out_of_reach_stays_in_force, 0, 2)
{
    CK_MECHANISM md5 = {CKM_MD5, NULL, 0};
    copy_of(target_path("scripted"), "target.so");
    configured("x-target: @/target.so\nx-disabled-algorithms: MD5\nx-log: stderr");
    for (int life = 0; life < 3; life++) {
        EXPECT(fn->C_Initialize(&os_locking), CKR_OK);
        EXPECT(fn->C_DigestInit(open_session(0, 0), &md5), CKR_MECHANISM_INVALID);
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
        ck_assert_uint_eq(messages_with("out of reach"), (unsigned)life);
        if (life > 0)
            continue;
        unlink(in_root("config"));
        unlink(in_root("target.so"));
        if (_i == 1) {
            /* Defaults are no policy. */
            unsetenv("P11_PROXY_CONFIG");
            setenv("P11_PROXY_TARGET", target_path("scripted"), 1);
        }
    }
}

/* What was read for the lists is read again by C_Initialize. _i: which variable changes; 2: the file. */
TEST_EACH(what_changed_after_the_lists_is_seen, 0, 3)
{
    proxy_with("");
    if (_i == 2)
        write_in_root("config", "x-pool: /nonexistent\n");
    else
        setenv(_i == 0 ? "P11_PROXY_CONFIG" : "P11_PROXY_TARGET", "/nonexistent", 1);
    EXPECT(fn->C_Initialize(&os_locking), CKR_GENERAL_ERROR);
    ck_assert_uint_eq(messages_with("/nonexistent"), 1);
}
