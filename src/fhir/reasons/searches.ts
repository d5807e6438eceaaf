import { share } from './words.ts'

const CORRECT = 'Correct the parameter.'
const OTHERWISE =
  'Search in another way. The CapabilityStatement (metadata) lists the search parameters of each type.'

/** Searches and histories that cannot be performed. Their sentences name parameters, but not their values. */
export const SEARCHES = {
  ...share(
    { status: 400, code: 'invalid', remedy: CORRECT },
    {
      'missing-value-malformed': 'Cannot read the value of {parameter}: :missing takes true or false',
      'value-missing': 'Cannot read the value of {parameter}: it has no value',
      'value-malformed': 'Cannot read the value of {parameter}: expected a {type} value',
      'include-malformed':
        'Cannot read {parameter}: expected Type:parameter, Type:parameter:TargetType or, without :iterate, *',
      'include-target-unknown': 'Cannot read {parameter}: {target} is not a resource type',
      'include-not-a-reference': 'Cannot include by {type}:{parameter}: it is not a reference',
      'count-malformed': 'Cannot read _count: expected a number from 0 to {most}',
      'sort-unknown': 'Cannot sort {type} by {parameter}: it is not a search parameter',
      'choice-unknown': 'Cannot read {parameter}: expected {choices}',
      'history-parameter-unknown': 'Cannot use {parameter} in a history',
      'since-malformed': 'Cannot read _since: expected a date and time',
      'at-malformed': 'Cannot read _at: expected one date and time',
      'history-sorted': 'Cannot sort a history: the newest version is first',
      'page-link-changed': 'Cannot read page: follow the link as it was given',
      'types-malformed': 'Cannot read _type: expected resource types of R4',
      'care-dates-malformed': 'Cannot read start or end: expected one date',
      'last-count-malformed': 'Cannot read max: expected one number from 1 to {most}',
      'patient-malformed': 'Cannot read patient: expected one id',
    },
  ),
  ...share(
    { status: 400, code: 'not-supported', remedy: OTHERWISE },
    {
      'parameter-unknown': 'Unknown search parameter {parameter} of {type}',
      'modifier-unsupported':
        'Cannot use modifier :{modifier} with {parameter}: it is not supported for {type}',
      'chain-too-long': 'Cannot follow more than {most} links',
      'chain-not-a-reference': 'Cannot chain {parameter}: it is not a reference',
      'chain-target-unknown': 'Cannot chain {parameter} to {type}',
      'has-malformed': 'Cannot read {parameter}: expected _has:Type:reference:parameter',
      'has-not-a-reference': 'Cannot use {parameter} in _has: it is not a reference to {type}',
      'chain-in-types': 'Cannot follow a chain in a search of several types: name one type',
      'everything-parameter-unknown': 'Cannot use {parameter} with $everything: on {type} it takes {taken}',
      'operation-parameter-unknown': 'Cannot use {parameter} with {operation}',
      'validate-mode-unknown': 'Cannot use this mode: $validate supports create, update and delete',
      'audit-page-link-changed': 'Cannot read page: use the link unchanged',
      'audit-sort-unsupported': 'Cannot sort AuditEvents except by date',
      'audit-include-unsupported': 'Cannot include resources with AuditEvents',
      'audit-chain-unsupported': 'Cannot follow a chain from AuditEvents',
    },
  ),
  ...share(
    { status: 400, code: 'too-costly', remedy: 'Search for less.' },
    {
      'value-too-long': 'Cannot search by the value of {parameter}: it has more than {most} characters',
      'search-steps-too-many':
        'Cannot search by so many values and types: it takes more than {most} steps. Name the type',
      'search-costs-too-much':
        'Cannot complete the request: it takes too much work. Search by fewer values, and name the type that a chain leads to',
      'include-rules-too-many': 'Cannot include by more than {most} types of references: name them',
      'audit-values-too-many': 'Cannot search AuditEvents by more than {most} values',
    },
  ),
} as const
