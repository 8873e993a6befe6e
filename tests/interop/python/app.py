"""A web application as Authlib's guide for Flask makes one; told issuer, client id and secret alone."""

import os

from authlib.integrations.flask_client import OAuth
from flask import Flask, url_for

app = Flask(__name__)
app.secret_key = "any secret of the application"
oauth = OAuth(app)
oauth.register(
    name="tulle",
    client_id=os.environ["CLIENT_ID"],
    client_secret=os.environ["CLIENT_SECRET"],
    server_metadata_url=os.environ["ISSUER"] + "/.well-known/openid-configuration",
    client_kwargs={"scope": "openid email profile"},
)


@app.route("/login")
def login():
    return oauth.tulle.authorize_redirect(url_for("auth", _external=True))


@app.route("/auth")
def auth():
    token = oauth.tulle.authorize_access_token()
    asked = oauth.tulle.userinfo(token=token)
    return {"claims": token["userinfo"], "email": asked["email"]}


app.run(host="127.0.0.1", port=int(os.environ["PORT"]))
