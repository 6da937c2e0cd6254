// work.go - what a server in Go does with a token: work MODULE
//
// Sixteen goroutines, each with a session, draw and hash on whatever thread they happen to be; one key signs.
package main

import (
	"fmt"
	"os"
	"sync"

	"github.com/miekg/pkcs11"
)

const (
	workers = 16
	draws   = 200
)

func need(err error) {
	if err != nil {
		panic(err)
	}
}

func open(ctx *pkcs11.Ctx) pkcs11.SessionHandle {
	slots, err := ctx.GetSlotList(true)
	need(err)
	session, err := ctx.OpenSession(slots[0], pkcs11.CKF_SERIAL_SESSION|pkcs11.CKF_RW_SESSION)
	need(err)
	return session
}

func sign(ctx *pkcs11.Ctx, session pkcs11.SessionHandle) []byte {
	need(ctx.FindObjectsInit(session, []*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_CLASS, pkcs11.CKO_PRIVATE_KEY)}))
	keys, _, err := ctx.FindObjects(session, 1)
	need(err)
	need(ctx.FindObjectsFinal(session))
	need(ctx.SignInit(session, []*pkcs11.Mechanism{pkcs11.NewMechanism(pkcs11.CKM_SHA256_RSA_PKCS, nil)}, keys[0]))
	signature, err := ctx.Sign(session, []byte("hello"))
	need(err)
	return signature
}

func main() {
	ctx := pkcs11.New(os.Args[1])
	need(ctx.Initialize())
	first := open(ctx)
	need(ctx.Login(first, pkcs11.CKU_USER, "1234"))
	var all sync.WaitGroup
	var guard sync.Mutex // guards seen
	seen := map[string]bool{}
	for i := 0; i < workers; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			session := open(ctx)
			for k := 0; k < draws; k++ {
				bytes, err := ctx.GenerateRandom(session, 16)
				need(err)
				need(ctx.DigestInit(session, []*pkcs11.Mechanism{pkcs11.NewMechanism(pkcs11.CKM_SHA256, nil)}))
				_, err = ctx.Digest(session, bytes)
				need(err)
				guard.Lock()
				seen[string(bytes)] = true
				guard.Unlock()
			}
		}()
	}
	fmt.Printf("%x\n", sign(ctx, first))
	all.Wait()
	fmt.Println(len(seen), "different draws")
	need(ctx.Logout(first))
	need(ctx.Finalize())
	ctx.Destroy()
}
