package idemhttp_test

import (
	"testing"
	"time"
)

const (
	// leasedCases is the test under which a rig's routes are on a lease.
	leasedCases = "TestLease_keepsTheCases/"
	// caseLease is their lease: renewed several times in a case that takes a second.
	caseLease = 2 * time.Second
)

// TestLease_keepsTheCases runs the cases that a claim on a lease must keep as they
// are again, on leased routes. Where something else is expected of a lease, the case
// has a test of its own.
func TestLease_keepsTheCases(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"Q1":                    TestQ1_secondRequestGetsTheFirstAnswer,
		"Q2":                    TestQ2_anotherAmountIsAMismatchAndChangesNothing,
		"Q3":                    TestQ3_fiftyAtOnceMakeOneOrder,
		"C1":                    TestC1_duplicateWaitsAndGetsTheReplay,
		"C2":                    TestC2_duplicateOfALongRequestIsToldToComeBack,
		"C3":                    TestC3_poolOfOneConnectionServesAll,
		"C4":                    TestC4_waitersHoldNoConnection,
		"C4 crowd":              TestC4_oneWaiterTooManyIsToldAtOnce,
		"C6":                    TestC6_mismatchIsToldWhileTheFirstIsInFlight,
		"C6 crowd":              TestC6_mismatchIsToldBeyondTheLimitOfWaiters,
		"C8":                    TestC8_noIsolationLevelMakesALostRaceAnError,
		"C9":                    TestC9_waitersInTheProcessGetTheAnswerThatIsNotRemembered,
		"C9 too large":          TestC9_waitersOfAnAnswerTooLargeAreToldSo,
		"D1":                    TestD1_workOfAClientThatWentAwayIsFinished,
		"D3":                    TestD3_restartUnderLoad,
		"P5":                    TestP5_answerTooLargeToStoreIsGivenOnce,
		"P5 held":               TestP5_answerTooLargeToHoldIsRolledBack,
		"P5 refusal":            TestP5_largeRefusalIsWithheldAndItsRowsAreGone,
		"P6":                    TestP6_panicFreesTheKeyAndReachesTheProgramsRecoverer,
		"P6 abort":              TestP6_abortAndGoexitAbortTheConnection,
		"P6 waiters":            TestP6_waitersOfAPanicAreTold,
		"P7":                    TestP7_whatIsNotARefusalIsRolledBackAndFreesTheKey,
		"P8":                    TestP8_refusalIsRemembered,
		"P9":                    TestP9_rowsOfARefusalAreGone,
		"P9 unique":             TestP9_uniqueViolationTurnedInto409IsRemembered,
		"P9 keep":               TestP9_keepWritesKeepsTheRowsOfARefusalOnly,
		"P9 aborted":            TestP9_keepWritesInAnAbortedTransactionIsNotApplied,
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
		"F5":                    TestF5_aBodyCutOffRunsNothingAndClaimsNothing,
		"S1":                    TestS1_twoPrincipalsHaveTwoOrders,
		"S2":                    TestS2_anotherPathQueryOrMethodIsAMismatch,
		"S4":                    TestS4_replayCheckRefusesThisVeryAnswer,
		"S6":                    TestS6_aStrangerIsServedWhileTheOwnersRequestRuns,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}
