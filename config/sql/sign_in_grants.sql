-- What signing in writes: sessions come and go, second factors are added, used and removed.
GRANT SELECT, INSERT, UPDATE, DELETE ON django_session, usersessions_usersession, mfa_authenticator TO lorekeeper_app;
GRANT SELECT, INSERT, UPDATE ON socialaccount_socialaccount TO lorekeeper_app;
-- allauth looks into these, and Lorekeeper keeps nothing in them: addresses are the person's own, providers are settings.
GRANT SELECT ON account_emailaddress, account_emailconfirmation, socialaccount_socialapp, socialaccount_socialtoken
    TO lorekeeper_app;
GRANT UPDATE (last_login) ON registry_person TO lorekeeper_app;
GRANT USAGE ON SEQUENCE usersessions_usersession_id_seq, mfa_authenticator_id_seq, socialaccount_socialaccount_id_seq
    TO lorekeeper_app;
