-- Roles and database of Lorekeeper. Idempotent; run by a superuser with psql, connected to any database:
--   psql -X -v ON_ERROR_STOP=1 -f deploy/postgres/roles.sql
-- Passwords come from the environment (never from the command line, where `ps` shows them); a role whose variable
-- is missing keeps the password that it has:
--   LOREKEEPER_OWNER_PASSWORD, LOREKEEPER_APP_PASSWORD, LOREKEEPER_GATEWAY_PASSWORD
--
-- lorekeeper_owner    owns the database and runs the migrations, which give the two others their rights
-- lorekeeper_app      web and workers
-- lorekeeper_gateway  the gateway: reads the routing views and appends request records

\getenv owner_password LOREKEEPER_OWNER_PASSWORD
\getenv app_password LOREKEEPER_APP_PASSWORD
\getenv gateway_password LOREKEEPER_GATEWAY_PASSWORD

SELECT format('CREATE ROLE %I', name)
FROM unnest(ARRAY['lorekeeper_owner', 'lorekeeper_app', 'lorekeeper_gateway']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)
\gexec

ALTER ROLE lorekeeper_owner LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
ALTER ROLE lorekeeper_app LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
ALTER ROLE lorekeeper_gateway LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;

\if :{?owner_password}
ALTER ROLE lorekeeper_owner PASSWORD :'owner_password';
\endif
\if :{?app_password}
ALTER ROLE lorekeeper_app PASSWORD :'app_password';
\endif
\if :{?gateway_password}
ALTER ROLE lorekeeper_gateway PASSWORD :'gateway_password';
\endif

-- A stuck statement, a forgotten transaction or a lost lock must not hold up the others.
ALTER ROLE lorekeeper_owner SET lock_timeout = '60s';
ALTER ROLE lorekeeper_owner SET idle_in_transaction_session_timeout = '10min';
ALTER ROLE lorekeeper_app SET statement_timeout = '30s';
ALTER ROLE lorekeeper_app SET lock_timeout = '10s';
ALTER ROLE lorekeeper_app SET idle_in_transaction_session_timeout = '60s';
ALTER ROLE lorekeeper_gateway SET statement_timeout = '5s';
ALTER ROLE lorekeeper_gateway SET lock_timeout = '2s';
ALTER ROLE lorekeeper_gateway SET idle_in_transaction_session_timeout = '15s';
-- Nobody can put a table or a function in front of ours.
ALTER ROLE lorekeeper_owner SET search_path = public;
ALTER ROLE lorekeeper_app SET search_path = public;
ALTER ROLE lorekeeper_gateway SET search_path = public;

SELECT 'CREATE DATABASE lorekeeper OWNER lorekeeper_owner'
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'lorekeeper')
\gexec
ALTER DATABASE lorekeeper OWNER TO lorekeeper_owner;

\connect lorekeeper
REVOKE ALL ON DATABASE lorekeeper FROM PUBLIC;
GRANT CONNECT ON DATABASE lorekeeper TO lorekeeper_app, lorekeeper_gateway;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO lorekeeper_app, lorekeeper_gateway;
