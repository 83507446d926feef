package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// config is the configuration file. Flags and the environment come first.
type config struct {
	// DatabaseURL is the PostgreSQL to use, as for --database-url.
	DatabaseURL string `json:"database_url"`

	path string
}

// maxConfig bounds the configuration file in bytes, so that a wrong path (a
// device, a dump) is told and not read.
const maxConfig = 1 << 20

// configFile reads the configuration file: that of --config, else of
// IDEM_CONFIG, else the user's own if there is one. A file that was named must
// exist. The zero config stands for none.
func (e env) configFile(cmd *cobra.Command) (config, error) {
	if flag := cmd.Flag("config"); flag.Changed {
		if flag.Value.String() == "" {
			return config{}, usagef("--config is empty; name a FILE, or leave it out")
		}
		return readConfig(flag.Value.String(), "--config")
	}
	if path := e.getenv("IDEM_CONFIG"); path != "" {
		return readConfig(path, "IDEM_CONFIG")
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return config{}, nil // no home, no file
	}
	cfg, err := readConfig(filepath.Join(dir, "idem", "config.json"), "")
	if errors.Is(err, fs.ErrNotExist) {
		return config{}, nil
	}
	return cfg, err
}

// readConfig reads one file. source says who named it; its errors never quote
// the file's content.
func readConfig(path, source string) (config, error) {
	if source != "" {
		source = " of " + source
	}
	file, err := os.Open(path)
	if err != nil {
		return config{}, usagef("cannot read the configuration file%s: %w", source, err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxConfig+1))
	if err != nil {
		return config{}, usagef("cannot read the configuration file%s: %w", source, err)
	}
	if len(content) > maxConfig {
		return config{}, usagef("the configuration file %s is larger than 1 MiB", path)
	}
	cfg := config{path: path}
	if err := decodeConfig(content, &cfg); err != nil {
		return config{}, usagef(`the configuration file %s must be {"database_url": "..."}: %w`, path, err)
	}
	return cfg, nil
}

func decodeConfig(content []byte, cfg *config) error {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(cfg); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("it is empty")
		}
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}
