package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// nodeFiles are the subjects that are written for Node.
//
//go:embed node
var nodeFiles embed.FS

// errNoNpm says that the machine cannot have packages of Node.
var errNoNpm = errors.New("no npm in PATH")

// nodeProgram is a directory with those subjects, their packages and, if the machine's
// is too old, Node.
type nodeProgram struct {
	dir  string
	kept bool
	node string
}

// nodeNeeded fails where Node is older than the subjects need; then nodeMajor is fetched.
const (
	nodeNeeded = "process.exit(process.versions.node.split('.').reduce((n, x) => n * 1000 + +x, 0) >= 22018000 ? 0 : 1)"
	nodeMajor  = "24"
)

// installNode makes the directory, a temporary one if dir is empty. npm fetches the
// packages, unless dir has them.
func installNode(ctx context.Context, dir string, log io.Writer) (_ *nodeProgram, err error) {
	if _, err := exec.LookPath("npm"); err != nil {
		return nil, errNoNpm
	}
	p := &nodeProgram{dir: dir, kept: dir != "", node: "node"}
	if !p.kept {
		if p.dir, err = os.MkdirTemp("", "idem-bench-node-"); err != nil {
			return nil, err
		}
	}
	if p.dir, err = filepath.Abs(p.dir); err == nil {
		err = p.install(ctx, log)
	}
	if err != nil {
		return nil, errors.Join(err, p.remove())
	}
	return p, nil
}

func (p *nodeProgram) install(ctx context.Context, log io.Writer) error {
	if err := p.write(); err != nil {
		return err
	}
	packages := []string{"install", "--no-audit", "--no-fund", "--no-save", "--prefer-offline", "--loglevel=error"}
	if exec.CommandContext(ctx, p.node, "-e", nodeNeeded).Run() != nil {
		name := nodePackage()
		packages = append(packages, name+"@"+nodeMajor)
		p.node = filepath.Join(p.dir, "node_modules", name, "bin", "node")
	}
	fmt.Fprintf(log, "npm %s\n", strings.Join(packages, " "))
	npm := exec.CommandContext(ctx, "npm", packages...)
	npm.Dir = p.dir
	if output, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm: %w\n%s", err, output)
	}
	return nil
}

// write writes the subjects' files.
func (p *nodeProgram) write() error {
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	files, err := nodeFiles.ReadDir("node")
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := nodeFiles.ReadFile("node/" + file.Name())
		if err == nil {
			err = os.WriteFile(filepath.Join(p.dir, file.Name()), content, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nodePackage is the package of npm with Node for this platform.
func nodePackage() string {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	return "node-" + runtime.GOOS + "-" + arch
}

// version is Node's.
func (p *nodeProgram) version() string {
	output, err := exec.Command(p.node, "--version").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(output))
}

func (p *nodeProgram) remove() error {
	if p.kept {
		return nil
	}
	return os.RemoveAll(p.dir)
}
