package claim

import (
	"cmp"
	"strings"
)

// commits reports whether a text of SQL holds a statement that commits: one whose verb is
// COMMIT, END or PREPARE TRANSACTION. It is asked before every statement. The body of a
// function that is no string (BEGIN ATOMIC ... END) counts as if it did.
func commits(sql string) bool {
	for rest := sql; ; {
		statement := skipBlank(rest)
		verb, tail := word(statement)
		switch {
		case isWord(verb, "commit"), isWord(verb, "end"):
			return true
		case isWord(verb, "prepare"):
			if next, _ := word(skipBlank(tail)); isWord(next, "transaction") {
				return true
			}
		}
		var more bool
		if rest, more = nextStatement(statement); !more {
			return false
		}
	}
}

func isWord(s, word string) bool { return strings.EqualFold(s, word) }

// nextStatement is what is behind the next semicolon that ends a statement.
func nextStatement(sql string) (rest string, more bool) {
	for {
		i := strings.IndexAny(sql, ";'\"$-/")
		if i < 0 {
			return "", false
		}
		if sql[i] == ';' {
			return sql[i+1:], true
		}
		sql = behindOpaque(sql, i)
	}
}

// behindOpaque is what is behind the string, the quoted name or the comment that begins at
// i, or behind the one byte if none does.
// https://www.postgresql.org/docs/current/sql-syntax-lexical.html
func behindOpaque(sql string, i int) string {
	at := sql[i:]
	switch {
	case at[0] == '\'' && i > 0 && isWord(sql[i-1:i], "e") && !inWord(sql, i-1):
		return behindEscaped(at[1:])
	case at[0] == '\'', at[0] == '"':
		return behind(at[1:], at[:1])
	case at[0] == '$' && !inWord(sql, i):
		if tag := dollarTag(at); tag != "" {
			return behind(at[len(tag):], tag)
		}
	case strings.HasPrefix(at, "--"), strings.HasPrefix(at, "/*"):
		return behindComment(at)
	}
	return at[1:]
}

// behind is what follows the next end. A string in which its quote is doubled is two that
// touch each other. One that does not end has nothing behind it.
func behind(sql, end string) string {
	_, rest, _ := strings.Cut(sql, end)
	return rest
}

// behindEscaped is what follows the end of a string with escapes.
func behindEscaped(sql string) string {
	for i := 0; i < len(sql); i++ {
		switch sql[i] {
		case '\\':
			i++
		case '\'':
			return sql[i+1:]
		}
	}
	return ""
}

// dollarTag is the $tag$ that sql begins with, or empty.
func dollarTag(sql string) string {
	for i := 1; i < len(sql); i++ {
		switch c := sql[i]; {
		case c == '$':
			return sql[:i+1]
		case !wordByte(c), i == 1 && digit(c): // $1 is a parameter
			return ""
		}
	}
	return ""
}

// behindComment is what follows the comment that sql begins with. Those with an end may
// hold others.
func behindComment(sql string) string {
	if sql[0] == '-' { // to the end of its line
		return sql[cmp.Or(strings.IndexAny(sql, "\r\n")+1, len(sql)):]
	}
	depth := 1
	for i := 2; i < len(sql); i++ {
		switch {
		case strings.HasPrefix(sql[i:], "/*"):
			depth++
			i++
		case strings.HasPrefix(sql[i:], "*/"):
			depth--
			i++
			if depth == 0 {
				return sql[i+1:]
			}
		}
	}
	return ""
}

// skipBlank is sql from its first byte that is neither blank nor part of a comment.
func skipBlank(sql string) string {
	for {
		sql = strings.TrimLeft(sql, " \t\r\n\f\v")
		if !strings.HasPrefix(sql, "--") && !strings.HasPrefix(sql, "/*") {
			return sql
		}
		sql = behindComment(sql)
	}
}

// word is the word that sql begins with, and what is behind it.
func word(sql string) (first, tail string) {
	i := 0
	for i < len(sql) && wordByte(sql[i]) {
		i++
	}
	return sql[:i], sql[i:]
}

// inWord reports whether the byte at i goes on with a word, or a number.
func inWord(sql string, i int) bool { return i > 0 && (wordByte(sql[i-1]) || sql[i-1] == '$') }

// wordByte is a byte of a word; what is not ASCII counts as a letter, as it does for
// PostgreSQL.
func wordByte(c byte) bool {
	return c == '_' || digit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

func digit(c byte) bool { return '0' <= c && c <= '9' }
