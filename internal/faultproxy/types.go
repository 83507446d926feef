package faultproxy

import (
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5/pgproto3"
)

func startupType(code uint32) string {
	if code == cancelCode {
		return "CancelRequest"
	}
	return "StartupMessage"
}

// frontendType names a client's message. What a 'p' is depends on what the
// server asked for.
func frontendType(kind byte, auth uint32) string {
	switch kind {
	case 'B':
		return "Bind"
	case 'C':
		return "Close"
	case 'D':
		return "Describe"
	case 'E':
		return "Execute"
	case 'F':
		return "FunctionCall"
	case 'H':
		return "Flush"
	case 'P':
		return "Parse"
	case 'Q':
		return "Query"
	case 'S':
		return "Sync"
	case 'X':
		return "Terminate"
	case 'c':
		return "CopyDone"
	case 'd':
		return "CopyData"
	case 'f':
		return "CopyFail"
	case 'p':
		return passwordType(auth)
	default:
		return fmt.Sprintf("%q", kind)
	}
}

func passwordType(auth uint32) string {
	switch auth {
	case pgproto3.AuthTypeSASL:
		return "SASLInitialResponse"
	case pgproto3.AuthTypeSASLContinue:
		return "SASLResponse"
	case pgproto3.AuthTypeGSS, pgproto3.AuthTypeGSSCont:
		return "GSSResponse"
	default:
		return "PasswordMessage"
	}
}

// backendType names a server's message.
func backendType(kind byte, body []byte) string {
	switch kind {
	case '1':
		return "ParseComplete"
	case '2':
		return "BindComplete"
	case '3':
		return "CloseComplete"
	case 'A':
		return "NotificationResponse"
	case 'C':
		return "CommandComplete"
	case 'D':
		return "DataRow"
	case 'E':
		return "ErrorResponse"
	case 'G':
		return "CopyInResponse"
	case 'H':
		return "CopyOutResponse"
	case 'I':
		return "EmptyQueryResponse"
	case 'K':
		return "BackendKeyData"
	case 'N':
		return "NoticeResponse"
	case 'R':
		return authenticationType(body)
	case 'S':
		return "ParameterStatus"
	case 'T':
		return "RowDescription"
	case 'V':
		return "FunctionCallResponse"
	case 'W':
		return "CopyBothResponse"
	case 'Z':
		return "ReadyForQuery"
	case 'c':
		return "CopyDone"
	case 'd':
		return "CopyData"
	case 'n':
		return "NoData"
	case 's':
		return "PortalSuspended"
	case 't':
		return "ParameterDescription"
	case 'v':
		return "NegotiateProtocolVersion"
	default:
		return fmt.Sprintf("%q", kind)
	}
}

func authenticationType(body []byte) string {
	if len(body) < 4 {
		return "Authentication"
	}
	switch auth := binary.BigEndian.Uint32(body); auth {
	case pgproto3.AuthTypeOk:
		return "AuthenticationOk"
	case pgproto3.AuthTypeCleartextPassword:
		return "AuthenticationCleartextPassword"
	case pgproto3.AuthTypeMD5Password:
		return "AuthenticationMD5Password"
	case pgproto3.AuthTypeGSS:
		return "AuthenticationGSS"
	case pgproto3.AuthTypeGSSCont:
		return "AuthenticationGSSContinue"
	case pgproto3.AuthTypeSASL:
		return "AuthenticationSASL"
	case pgproto3.AuthTypeSASLContinue:
		return "AuthenticationSASLContinue"
	case pgproto3.AuthTypeSASLFinal:
		return "AuthenticationSASLFinal"
	default:
		return fmt.Sprintf("Authentication %d", auth)
	}
}
