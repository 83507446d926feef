//go:build unix

package embedded

import (
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// release is a version of PostgreSQL to fetch, with the SHA-256 of its archive
// for each platform.
type release struct {
	version string
	sums    map[string]string
}

// pinnedRelease is the only release that we fetch. Whoever changes the version
// replaces all the sums; a platform without one is not fetched for.
func pinnedRelease() release {
	return release{
		version: string(embeddedpostgres.V17),
		sums: map[string]string{
			"17.5.0 linux-amd64":    "646f3269075d1a23904127374e3cdbcef96beb32979fedee25d835877400fcbe",
			"17.5.0 linux-arm64v8":  "e02f27ff50ff2d90b6541d54f3f108505aacd84ea53c2890e976a684bfea2752",
			"17.5.0 darwin-amd64":   "fb70f783928e77c3d6ef5ca8ed644f1ac502f740fcfc032a375c8347820f2bdd",
			"17.5.0 darwin-arm64v8": "e9d3398e10c2ec926395498b03e75ad1a24eeaed82895e756a7e173b202cf6de",
		},
	}
}

func (r release) major() int {
	text, _, _ := strings.Cut(r.version, ".")
	major, _ := strconv.Atoi(text)
	return major
}

// sum returns the checksum of the archive for a platform.
func (r release) sum(platform string) (string, error) {
	sum, ok := r.sums[r.version+" "+platform]
	if !ok {
		return "", fmt.Errorf("no checksum is known for PostgreSQL %s on %s, and nothing unverified is run", r.version, platform)
	}
	return sum, nil
}

// archivePath is where a repository has the archive of a platform.
func (r release) archivePath(platform string) string {
	name := "embedded-postgres-binaries-" + platform
	return fmt.Sprintf("io/zonky/test/postgres/%s/%s/%s-%s.jar", name, r.version, name, r.version)
}

// thisPlatform names the platform as the repository does.
func thisPlatform() string {
	arch := runtime.GOARCH
	if arch == "arm64" {
		arch = "arm64v8"
	}
	if _, err := os.Stat("/etc/alpine-release"); err == nil {
		arch += "-alpine"
	}
	return runtime.GOOS + "-" + arch
}

// defaultRepository is the repository that the library would fetch from. The
// library tells nobody but its own downloader, which unpacks and runs what it
// got before anybody could compare a checksum of ours; so we look inside.
func defaultRepository() string {
	return reflect.ValueOf(embeddedpostgres.DefaultConfig()).FieldByName("binaryRepositoryURL").String()
}
