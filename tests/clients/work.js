// work.js - what a server in Node.js does with a token: work.js MODULE. Calls that wait run in threads of Node's own.
const pkcs11js = require("pkcs11js");

const DRAWS = 300;
const SIGNATURES = 20;

async function main() {
    const token = new pkcs11js.PKCS11();
    token.load(process.argv[2]);
    token.C_Initialize();
    const slot = token.C_GetSlotList(true)[0];
    const session = token.C_OpenSession(slot, pkcs11js.CKF_SERIAL_SESSION | pkcs11js.CKF_RW_SESSION);
    token.C_Login(session, pkcs11js.CKU_USER, "1234");

    const seen = new Set();
    for (let i = 0; i < DRAWS; i++)
        seen.add(token.C_GenerateRandom(session, Buffer.alloc(16)).toString("hex"));
    console.log(seen.size, "different draws");

    token.C_DigestInit(session, { mechanism: pkcs11js.CKM_SHA256 });
    console.log((await token.C_DigestAsync(session, Buffer.from("hello"), Buffer.alloc(32))).toString("hex"));

    token.C_FindObjectsInit(session, [{ type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_PRIVATE_KEY }]);
    const key = token.C_FindObjects(session);
    token.C_FindObjectsFinal(session);
    const signatures = new Set();
    for (let i = 0; i < SIGNATURES; i++) {
        token.C_SignInit(session, { mechanism: pkcs11js.CKM_SHA256_RSA_PKCS }, key);
        signatures.add((await token.C_SignAsync(session, Buffer.from("hello"), Buffer.alloc(256))).toString("hex"));
    }
    console.log([...signatures]);
    token.C_CloseSession(session);
    token.C_Finalize();
    token.close();
}

main();
