// The pages in French, with the spaces that its punctuation keeps on the line.
import type { Texts } from "../texts.ts";

export const french: Texts = {
  language: "fr",
  login: {
    title: "Connexion",
    toContinue: "pour continuer vers {client}",
    toAccount: "pour voir votre compte",
    again: "Veuillez saisir de nouveau votre mot de passe.",
    username: "Nom d’utilisateur",
    password: "Mot de passe",
    show: "Afficher",
    hide: "Masquer",
    submit: "Se connecter",
    wrong: "Le nom d’utilisateur ou le mot de passe est incorrect.",
    missing: "Saisissez votre nom d’utilisateur et votre mot de passe.",
    throttled: "Trop de tentatives. Réessayez dans {wait}.",
    busy: "Trop de personnes se connectent en ce moment. Réessayez dans {wait}.",
    reloaded: "Cette page n’était plus à jour et a été rechargée. Veuillez réessayer.",
  },
  consent: {
    title: "Autoriser {client}\u202f?",
    signedInAs: "Connecté en tant que {user}",
    change: "Ce n’est pas vous\u202f?",
    asks: "{client} demande à\u00a0:",
    choose: "Décochez ce que vous ne voulez pas autoriser.",
    needed: "(nécessaire)",
    reaches: "Cet accès servira auprès de {places}.",
    goesTo: "Vous serez ensuite dirigé vers {place}.",
    goesToDevice: "une application sur cet appareil",
    unverified:
      "N’importe qui peut utiliser le nom de cette application. Continuez seulement si vous venez de la lancer vous-même.",
    allow: "Autoriser",
    deny: "Refuser",
    takeBack: "Vous pouvez retirer cet accès à tout moment sur la page de votre compte.",
  },
  formPost: {
    title: "Retour à l’application",
    go: "Continuer",
  },
  scopes: {
    openid: "Savoir qui vous êtes",
    profile: "Voir votre nom",
    email: "Voir votre adresse e-mail",
    offline_access: "Garder cet accès pendant votre absence",
    roles: "Voir vos rôles",
    groups: "Voir les groupes dont vous faites partie",
  },
  claimScope: "Voir votre «\u00a0{scope}\u00a0»",
  unknownScope: "Utiliser «\u00a0{scope}\u00a0»",
  error: {
    title: "Impossible de répondre à cette demande",
    intro:
      "L’application qui vous a envoyé ici a fait une demande que nous ne pouvons pas accepter. Revenez en arrière et réessayez\u202f; si cela se reproduit, prévenez les responsables de l’application.",
    forDevelopers: "Pour ses développeurs",
    id: "Numéro de l’erreur",
    expiredTitle: "Cette page a expiré",
    expired:
      "La connexion est terminée, a pris trop de temps ou a commencé dans un autre navigateur. Revenez à l’application et recommencez.",
    deniedTitle: "Vous n’avez pas autorisé {client}",
    denied: "Rien n’a été transmis. Vous pouvez fermer cette fenêtre ou revenir à l’application.",
    unavailableTitle: "Indisponible pour le moment",
    unavailable:
      "Le service n’atteint pas ce dont il a besoin. Rien n’est perdu\u202f; veuillez réessayer dans une minute.",
    brokenTitle: "Une erreur s’est produite chez nous",
    broken:
      "Nous avons noté ce qui s’est passé. Veuillez réessayer\u202f; si cela se reproduit, donnez le numéro de l’erreur aux responsables de ce service.",
    forgedTitle: "Ce formulaire ne venait pas de notre page",
    forged: "Pour vous protéger, nous l’avons ignoré. Revenez en arrière et réessayez.",
    notFoundTitle: "Il n’y a rien ici",
    notFound: "Cette adresse n’est pas l’une des nôtres.",
  },
  ways: {
    elsewhere: "Aller à {place}",
    account: "Aller à votre compte",
    again: "Réessayer",
    home: "Aller à la page d’accueil",
    signIn: "Aller à la connexion",
  },
  account: {
    title: "Votre compte",
    hello: "Connecté en tant que {user}",
    applications: "Applications ayant accès",
    noApplications: "Aucune application n’a accès à votre compte.",
    since: "depuis le {moment}",
    revoke: "Retirer",
    revokeLabel: "Retirer l’accès de {client}",
    sessions: "Où vous êtes connecté",
    thisBrowser: "ce navigateur",
    lastUsed: "dernière utilisation le {moment}",
    end: "Déconnecter",
    endLabel: "Déconnecter {browser}",
    unknownBrowser: "Navigateur inconnu",
    passwordTitle: "Changer votre mot de passe",
    passwordEffect: "Vous serez déconnecté partout, et toutes les applications perdront leur accès.",
    currentPassword: "Mot de passe actuel",
    newPassword: "Nouveau mot de passe",
    changePassword: "Changer le mot de passe",
    passwordWrong: "Le mot de passe actuel est incorrect.",
    passwordShort: {
      one: "Choisissez un mot de passe d’au moins {count} caractère.",
      other: "Choisissez un mot de passe d’au moins {count} caractères.",
    },
    passwordUnfit: "Un mot de passe n’a aucun caractère de contrôle et {count} caractères au plus.",
    passwordCommon:
      "Ce mot de passe est très répandu\u00a0: c’est l’un des premiers que l’on essaie. Choisissez-en un autre.",
    passwordPersonal:
      "Ce mot de passe est formé de votre nom d’utilisateur\u00a0: c’est l’un des premiers que l’on essaie. Choisissez-en un autre.",
    signOut: "Se déconnecter",
    revoked: "L’application n’a plus accès.",
    ended: "Ce navigateur est déconnecté.",
    passwordChangedTitle: "Votre mot de passe est changé",
    passwordChanged: "Veuillez vous reconnecter avec le nouveau.",
  },
  logout: {
    title: "Se déconnecter\u202f?",
    question:
      "Vous êtes connecté en tant que {user}. Les applications que vous avez utilisées gardent leur propre connexion.",
    confirm: "Se déconnecter",
    stay: "Rester connecté",
    doneTitle: "Vous êtes déconnecté",
    done: "Vous pouvez fermer cette fenêtre.",
    stayedTitle: "Vous êtes toujours connecté",
    stayed: "Rien n’a changé.",
  },
  errorCodeTitle: "Erreur {code}",
  errorCodes: {
    invalid_request:
      "Il manque un paramètre à la requête, un paramètre y figure deux fois, ou l’un d’eux est illisible. La description de l’erreur le nomme.",
    invalid_client:
      "Le client n’a pas pu être authentifié\u00a0: il est inconnu, son secret est faux, ou il n’en a pas envoyé.",
    invalid_grant:
      "Le code ou le jeton de rafraîchissement est inconnu, expiré, révoqué, déjà utilisé, ou appartient à un autre client ou à une autre URI de redirection.",
    unauthorized_client:
      "Le client est enregistré, mais pas pour cette façon de demander. Modifiez son enregistrement.",
    unsupported_grant_type:
      "Le point d’accès des jetons connaît authorization_code, refresh_token et client_credentials.",
    unsupported_response_type: "Le point d’accès d’autorisation connaît le type de réponse code.",
    invalid_scope: "Une portée est inconnue, ou n’est pas enregistrée pour le client.",
    invalid_target: "Une ressource n’est pas enregistrée pour le client, ou ne faisait pas partie de l’autorisation.",
    access_denied: "Le propriétaire a refusé, et l’application n’a rien reçu.",
    server_error:
      "Une erreur s’est produite dans le serveur. Le numéro de l’erreur en indique la raison à ses responsables.",
    temporarily_unavailable:
      "Le serveur ne peut pas travailler en ce moment. Réessayez après le délai que donne Retry-After.",
    login_required: "La requête disait prompt=none, et le propriétaire devrait se connecter.",
    consent_required: "La requête disait prompt=none, et le propriétaire devrait donner son accord.",
    unmet_authentication_requirements:
      "L’application demande une connexion plus forte que celle que propose ce serveur.",
    account_selection_required: "La requête disait prompt=none, et le propriétaire devrait choisir un compte.",
    interaction_required: "La requête disait prompt=none, et le propriétaire devrait faire quelque chose.",
    request_not_supported: "Les objets de requête (le paramètre request) ne sont pas pris en charge.",
    request_uri_not_supported: "Le paramètre request_uri n’est pas pris en charge.",
    registration_not_supported: "Le paramètre registration n’est pas pris en charge.",
    unsupported_token_type: "Un jeton de ce type ne peut pas être révoqué.",
    invalid_token: "Le jeton d’accès est expiré, révoqué, mal formé ou ne vient pas de ce serveur.",
    insufficient_scope: "Il manque au jeton d’accès la portée que la ressource demande.",
  },
  home: {
    title: "Service de connexion",
    intro: "Les applications vous envoient ici pour vous connecter.",
  },
};
