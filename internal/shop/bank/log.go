package bank

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
)

// durableLog is a file with one JSON line per entry. A line is on disk before
// anybody is told of it. Not for concurrent use.
type durableLog struct {
	file *os.File
	err  error // of the append that failed: what it has left in the file is not known
}

// openLog opens the log of this path for this process alone, and reads it back.
func openLog(path string, logger *slog.Logger) (*durableLog, []entry, error) {
	if path == "" {
		return nil, nil, errors.New("bank: there is no name for the log's file; give it one")
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("bank: open the log: %w", err)
	}
	entries, err := readLog(file, logger)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return &durableLog{file: file}, entries, nil
}

func readLog(file *os.File, logger *slog.Logger) ([]entry, error) {
	switch alone, err := lockFile(file); {
	case err != nil:
		return nil, fmt.Errorf("bank: lock the log %s: %w", file.Name(), err)
	case !alone:
		return nil, fmt.Errorf("bank: another bank has the log %s; stop it, or use another file", file.Name())
	}
	if err := syncDir(filepath.Dir(file.Name())); err != nil {
		return nil, fmt.Errorf("bank: make the log: %w", err)
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("bank: read the log: %w", err)
	}
	whole := bytes.LastIndexByte(content, '\n') + 1
	if torn := len(content) - whole; torn > 0 {
		// A process was killed while it wrote. Nobody was told of this line: its
		// end is written with it, and both are on disk before a reply.
		logger.Warn("bank: the log ended in the middle of a line, which was cut off", "log", file.Name(), "bytes", torn)
		if err := errors.Join(file.Truncate(int64(whole)), file.Sync()); err != nil {
			return nil, fmt.Errorf("bank: cut the log: %w", err)
		}
	}
	var entries []entry
	for line := range bytes.Lines(content[:whole]) {
		e, err := readEntry(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			return nil, fmt.Errorf("bank: %s, line %d cannot be read: %w; repair the log, or use another file", file.Name(), len(entries)+1, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// append puts an entry on disk. After an error the log takes no more: a later
// line would hide what the failed one has left behind.
func (l *durableLog) append(e entry) error {
	if l.err != nil {
		return l.err
	}
	line, err := e.line()
	if err != nil {
		return fmt.Errorf("bank: encode an entry: %w", err)
	}
	if _, err = l.file.Write(line); err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		l.err = fmt.Errorf("bank: the log cannot be written to, start the bank again when it can: %w", err)
	}
	return l.err
}

// close ends the log, and with it this process's right to it.
func (l *durableLog) close() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("bank: close the log: %w", err)
	}
	return nil
}

// syncDir makes the name of a new file durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
