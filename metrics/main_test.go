package metrics_test

import (
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
