package idemclient

import (
	"context"
	"sync"
)

// Store keeps the keys of named intents. Its methods are called by several
// goroutines at once, and may be by several processes.
type Store interface {
	// Keep returns the key that is kept for intent. If there is none, it keeps
	// key and returns it. Of several calls at once, one key wins and all return
	// it. It returns only when the key would be found again after a crash. An
	// error means that nothing is sent.
	Keep(ctx context.Context, intent, key string) (kept string, err error)

	// Forget drops the key that is kept for intent, if there is one. The transport
	// never calls it: the program does, after it has recorded what came of the
	// intent, or because a Problem says SafeNewKey. The same name is then a new
	// intent.
	Forget(ctx context.Context, intent string) error
}

// Memory is a Store that lasts as long as the process: for intents that are
// repeated by loops of the program's own, and for tests. It grows until Forget.
// Its zero value is ready. Safe for concurrent use.
type Memory struct {
	mu   sync.Mutex
	keys map[string]string
}

// Keep returns the key that is kept for intent, which is key if there is none
// yet. It never fails.
func (m *Memory) Keep(_ context.Context, intent, key string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if kept, ok := m.keys[intent]; ok {
		return kept, nil
	}
	if m.keys == nil {
		m.keys = map[string]string{}
	}
	m.keys[intent] = key
	return key, nil
}

// Forget drops the key that is kept for intent. It never fails.
func (m *Memory) Forget(_ context.Context, intent string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.keys, intent)
	return nil
}
