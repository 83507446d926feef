package idemhttp_test

import "testing"

// lazyCases is the test under which a rig's routes have LazyClaim.
const lazyCases = "TestLazyClaim_keepsTheCases/"

// TestLazyClaim_keepsTheCases runs the cases that a lazy claim must keep again, on
// lazy routes.
func TestLazyClaim_keepsTheCases(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"Q1":                    TestQ1_secondRequestGetsTheFirstAnswer,
		"Q2":                    TestQ2_anotherAmountIsAMismatchAndChangesNothing,
		"Q3":                    TestQ3_fiftyAtOnceMakeOneOrder,
		"C1":                    TestC1_duplicateWaitsAndGetsTheReplay,
		"C2":                    TestC2_duplicateOfALongRequestIsToldToComeBack,
		"C3":                    TestC3_poolOfOneConnectionServesAll,
		"C4":                    TestC4_aThousandDuplicatesOverTwoProcesses,
		"C6":                    TestC6_mismatchIsToldWhileTheFirstIsInFlight,
		"C8":                    TestC8_noIsolationLevelMakesALostRaceAnError,
		"C9":                    TestC9_waitersInTheProcessGetTheAnswerThatIsNotRemembered,
		"P6":                    TestP6_panicFreesTheKeyAndReachesTheProgramsRecoverer,
		"P6b":                   TestP6_abortAndGoexitAbortTheConnection,
		"P6c":                   TestP6_waitersOfAPanicAreTold,
		"P7":                    TestP7_whatIsNotARefusalIsRolledBackAndFreesTheKey,
		"P8":                    TestP8_refusalIsRemembered,
		"P9":                    TestP9_rowsOfARefusalAreGone,
		"P9b":                   TestP9_uniqueViolationTurnedInto409IsRemembered,
		"P9c":                   TestP9_keepWritesKeepsTheRowsOfARefusalOnly,
		"P9d":                   TestP9_keepWritesInAnAbortedTransactionIsNotApplied,
		"P12 deadlock":          TestP12_deadlockIsRunAgain,
		"P12 serialization":     TestP12_serializationFailureIsRunAgain,
		"P12 commit":            TestP12_serializationFailureOfCommitIsRunAgain,
		"P12 every run":         TestP12_whatFailsAtEveryRunIsUnavailable,
		"P12 reruns":            TestP12_rerunsEndWithTheLimit,
		"P12 cut":               TestP12_cutConnectionIsUnavailable,
		"P12 lock timeout":      TestP12_lockTimeoutIsUnavailable,
		"P12 statement timeout": TestP12_statementTimeoutIsUnavailable,
		"P12 read only":         TestP12_readOnlyIsUnavailable,
		"P12 however":           TestP12_failureIsSeenHoweverItIsMet,
		"P12 codes":             TestP12_everyTransientCodeIsUnavailableAndNoOther,
		"P12 savepoint":         TestP12_ownSavepointAndSuccessIsKept,
		"D6 ended":              TestD6_transactionEndedByTheHandlerIsFoundOut,
		"D6 savepoint":          TestD6_rollingBackToASavepointEndsNothing,
		"D6 prepared":           TestD6_preparedTransactionIsUnknown,
		"D6 waiters":            TestD6_waitersOfACommitAreToldThatTheOutcomeIsUnknown,
		"D6 never returns":      TestD6_commitAndThenNeverReturningIsUnknown,
		"D6 bound":              TestD6_commitThatIsSeenIsBoundBeforeTheHandlerReturns,
		"D6 again":              TestD6_whatAHandlerHasCommittedIsNeverCommittedAgain,
		"D6 free":               TestD6_whatHasNotCommittedLeavesTheKeyFree,
		"D10":                   TestD10_deferredConstraintIsNotApplied,
		"D11":                   TestD11_handlerThatNeverReturnsIsGivenUp,
		"D11 blocked":           TestD11_handlerBlockedInTheDatabaseIsGivenUp,
		"D11 heeds":             TestD11_handlerThatHeedsItsContextIsUnavailableToo,
		"D11 waiters":           TestD11_waitersOfAHandlerThatIsGivenUpAreTold,
		"limits":                TestLimits_areSetWithBegin,
	} {
		if !advisoryLocks && name[0] != 'Q' && name[0] != 'C' {
			continue // no other request is in it, so locks make no difference
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}
