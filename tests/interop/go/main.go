// A web application as the examples of x/oauth2 and go-oidc make one: code with PKCE, state and nonce; the ID token is verified,
// userinfo asked, and the token refreshed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const state, nonce = "some state", "some nonce"

type page struct {
	Subject   string
	Email     string
	Userinfo  string
	Refreshed bool
}

func main() {
	ctx := context.Background()
	provider, err := oidc.NewProvider(ctx, os.Getenv("ISSUER"))
	if err != nil {
		log.Fatal(err)
	}
	verifier := provider.Verifier(&oidc.Config{ClientID: os.Getenv("CLIENT_ID")})
	config := oauth2.Config{
		ClientID:     os.Getenv("CLIENT_ID"),
		ClientSecret: os.Getenv("CLIENT_SECRET"),
		Endpoint:     provider.Endpoint(),
		RedirectURL:  "http://" + os.Getenv("ADDRESS") + "/callback",
		Scopes:       []string{oidc.ScopeOpenID, "profile", "email", oidc.ScopeOfflineAccess},
	}
	// One owner at a time is enough here.
	challenge := oauth2.GenerateVerifier()

	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, config.AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(challenge)), http.StatusFound)
	})
	http.HandleFunc("/callback", func(w http.ResponseWriter, r *http.Request) {
		shown, err := callback(r, provider, verifier, &config, challenge)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		json.NewEncoder(w).Encode(shown)
	})
	log.Print("listening")
	log.Fatal(http.ListenAndServe(os.Getenv("ADDRESS"), nil))
}

func callback(
	r *http.Request, provider *oidc.Provider, verifier *oidc.IDTokenVerifier, config *oauth2.Config, challenge string,
) (*page, error) {
	if r.URL.Query().Get("state") != state {
		return nil, errors.New("another state or nonce")
	}
	token, err := config.Exchange(r.Context(), r.URL.Query().Get("code"), oauth2.VerifierOption(challenge))
	if err != nil {
		return nil, err
	}
	raw, _ := token.Extra("id_token").(string)
	idToken, err := verifier.Verify(r.Context(), raw)
	if err != nil {
		return nil, err
	}
	if idToken.Nonce != nonce {
		return nil, errors.New("another state or nonce")
	}
	if err := idToken.VerifyAccessToken(token.AccessToken); err != nil {
		return nil, err
	}
	user, err := provider.UserInfo(r.Context(), config.TokenSource(r.Context(), token))
	if err != nil {
		return nil, err
	}
	token.Expiry = time.Now().Add(-time.Hour)
	refreshed, err := config.TokenSource(r.Context(), token).Token()
	if err != nil {
		return nil, err
	}
	return &page{idToken.Subject, user.Email, user.Subject, refreshed.AccessToken != token.AccessToken}, nil
}
