package main

import (
	"context"
	"strings"
	"time"

	"github.com/idem-go/idem"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	// connectTimeout bounds one attempt to connect, where the URL does not say
	// otherwise: an operator should not wait for the system's two minutes.
	connectTimeout = 10 * time.Second
	// maxConnections is enough for any admin command.
	maxConnections = 4
)

// addDatabaseFlags adds the flags of commands that need a database.
func addDatabaseFlags(flags *pflag.FlagSet) {
	flags.String("database-url", "", "PostgreSQL to use, a `URL`; else DATABASE_URL, else the configuration file")
	flags.String("config", "", "configuration `FILE`, {\"database_url\": \"...\"}; else IDEM_CONFIG,\n"+
		"else idem/config.json in the user's configuration directory")
}

// databaseURL is a database's address and where it was said, for messages:
// the address itself may hold a password and is never printed.
type databaseURL struct {
	value, source string
}

// databaseURL finds the database: flag over environment over file.
func (e env) databaseURL(cmd *cobra.Command) (databaseURL, error) {
	file, err := e.configFile(cmd)
	if err != nil {
		return databaseURL{}, err
	}
	if flag := cmd.Flag("database-url"); flag.Changed {
		return named(flag.Value.String(), "--database-url")
	}
	if value := e.getenv("DATABASE_URL"); value != "" {
		return named(value, "DATABASE_URL")
	}
	if file.DatabaseURL != "" {
		return named(file.DatabaseURL, file.path)
	}
	return databaseURL{}, usagef("no database configured: use --database-url, set DATABASE_URL, or write database_url into a file for --config")
}

func named(value, source string) (databaseURL, error) {
	value = strings.TrimSpace(value)
	if value == "" {
		return databaseURL{}, usagef("the database URL in %s is empty", source)
	}
	return databaseURL{value: value, source: source}, nil
}

// withPool runs body with a pool on the configured database and closes it.
func (e env) withPool(cmd *cobra.Command, body func(context.Context, *pgxpool.Pool) error) error {
	url, err := e.databaseURL(cmd)
	if err != nil {
		return err
	}
	cfg, err := poolConfig(url)
	if err != nil {
		return err
	}
	pool, err := pgxpool.NewWithConfig(cmd.Context(), cfg)
	if err != nil {
		return exitf(exitUnavailable, "cannot use the database: %w", err)
	}
	defer pool.Close()
	return body(cmd.Context(), pool)
}

// withDB is withPool for commands that need the schema.
func (e env) withDB(cmd *cobra.Command, body func(context.Context, *idem.DB) error) error {
	return e.withPool(cmd, func(ctx context.Context, pool *pgxpool.Pool) error {
		db, err := idem.Open(ctx, pool, idem.Config{})
		if err != nil {
			return err
		}
		return body(ctx, db)
	})
}

// poolConfig reads a database URL. What the driver says about one that it
// cannot read may hold parts of a password, so only known phrases of it are
// passed on.
func poolConfig(url databaseURL) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(url.value)
	if err != nil {
		return nil, unreadable(url, knownCause(err))
	}
	if strandedAt(url.value) || strings.Contains(cfg.ConnConfig.Host, "@") {
		return nil, unreadable(url, `an "@" in a wrong place`)
	}
	cfg.MaxConns = min(cfg.MaxConns, maxConnections)
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = "idem"
	}
	idem.Prepare(cfg)
	return cfg, nil
}

func unreadable(url databaseURL, cause string) error {
	if cause != "" {
		cause = " (" + cause + ")"
	}
	return usagef("the database URL in %s cannot be read%s; it looks like postgres%shost:5432/database, with special characters percent-encoded", url.source, cause, exampleCredentials)
}

// strandedAt reports whether a URL has an "@" only after a "/" or "?". A
// password with such a character, not encoded, makes the driver take parts of it
// for a host or a database, and name them in its errors.
func strandedAt(url string) bool {
	_, rest, isURL := strings.Cut(url, "://")
	if !isURL {
		return false
	}
	at := strings.IndexByte(rest, '@')
	end := strings.IndexAny(rest, "/?")
	return at >= 0 && end >= 0 && end < at
}

// parseCauses are phrases of the driver's about an unreadable URL that name no
// part of it.
var parseCauses = [...]string{
	"invalid port", "invalid connect_timeout", "failed to configure TLS", "failed to read service",
	"unknown target_session_attrs value", "invalid sslcertmode", "invalid require_auth", "unknown channel_binding value",
	"invalid min_protocol_version", "invalid max_protocol_version", "could not match",
	"pool_max_conns", "pool_min_conns", "pool_max_conn_lifetime", "pool_max_conn_idle_time", "pool_health_check_period",
	"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity",
	"failed to parse as URL", "failed to parse as keyword/value",
}

// knownCause finds the driver's reason behind the quoted URL.
func knownCause(err error) string {
	text := err.Error()
	reason := text[strings.LastIndexByte(text, '`')+1:]
	for _, cause := range parseCauses {
		if strings.Contains(reason, cause) {
			return cause
		}
	}
	return ""
}
