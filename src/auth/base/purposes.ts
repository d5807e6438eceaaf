import { PORTAL_CLIENT } from '../../smart/index.ts'

/** Why the auth server reads from the FHIR server, and how that is told to patients, auditors and developers. */
export interface PurposeText {
  /**
   * `look`: a person asked to see it. `administration`: an administrator or auditor checks something. `service`: the server
   * reads it for itself, and shows nobody more than a hint.
   */
  readonly use: 'look' | 'administration' | 'service'
  /** The reason in the audit record. Stored records are recognized by it, so it never changes. */
  readonly note: string
  /** Where it was: "With the patient list". */
  readonly place: string
  /** What was done, in place of the data that was read. The argument is "your record" or "Zoë’s record". */
  readonly act?: (record: string) => string
}

const SERVER = 'this server'
const ADMINISTRATION = 'the administration'

/** Every reader of the auth server names one of these. */
export const PURPOSES = {
  'patient-list': { use: 'look', note: 'Patient list', place: 'the patient list' },
  'patient-choice': { use: 'look', note: 'Choice of a patient for an app', place: 'the patient picker' },
  consent: { use: 'look', note: 'Consent page', place: 'the consent page' },
  'decision-support': { use: 'look', note: 'Decision support', place: 'decision support' },
  'apps-with-access': {
    use: 'look',
    note: 'Names in the list of apps with access',
    place: 'the list of apps with access',
  },
  'own-pages': {
    use: 'look',
    note: 'Names on a page of a patient or relative',
    place: 'the pages of patients and relatives',
  },
  proposal: { use: 'look', note: 'Proposal of an assistant', place: 'the proposals of assistants' },
  signature: {
    use: 'look',
    note: 'Signature of a proposal of an assistant',
    place: 'the proposals of assistants',
    act: record => `Signed a change of ${record} that an assistant had proposed.`,
  },
  developer: { use: 'look', note: 'Page of developers', place: 'the pages of developers' },
  launch: {
    use: 'look',
    note: 'Launch of an app',
    place: 'the patient list',
    act: record => `Started an app with ${record}.`,
  },
  'launch-request': {
    use: 'look',
    note: 'Launch requested by another system',
    place: 'another system',
    act: record => `Started an app with ${record}.`,
  },
  account: {
    use: 'administration',
    note: 'Check of an account',
    place: ADMINISTRATION,
    act: record => `Checked an account that may open ${record}.`,
  },
  'account-patient': {
    use: 'administration',
    note: 'Search for the patient of an account',
    place: ADMINISTRATION,
    act: () => 'Found the name in a search for the patient of an account.',
  },
  policy: {
    use: 'administration',
    note: 'Check of who may see a patient',
    place: ADMINISTRATION,
    act: record => `Checked who may see ${record}.`,
  },
  'audit-search': {
    use: 'administration',
    note: 'Search for a patient in the audit trail',
    place: ADMINISTRATION,
    act: () => 'Found the name in a search, to check who used a record.',
  },
  'patient-search': {
    use: 'administration',
    note: 'Search for a patient in the administration',
    place: ADMINISTRATION,
    act: () => 'Found the name in a search of the administration.',
  },
  'administration-names': {
    use: 'administration',
    note: 'Names on a page of the administration',
    place: ADMINISTRATION,
    act: () => 'Saw the name on a page of the administration.',
  },
  /** By a command, which the FHIR server does not see. */
  'data-export': {
    use: 'administration',
    note: 'Export by a command',
    place: ADMINISTRATION,
    act: record => `Copied ${record} to files.`,
  },
  /** Of records before version 0.4, which do not say more. */
  administration: {
    use: 'administration',
    note: 'Lookup in the administration',
    place: ADMINISTRATION,
    act: () => 'Looked up a name or an account in the administration.',
  },
  'own-records': { use: 'service', note: 'Whose records a user may open', place: SERVER },
  representatives: { use: 'service', note: 'Who may act for a patient', place: SERVER },
  'staff-names': { use: 'service', note: 'Names and roles of staff', place: SERVER },
  'sign-in': { use: 'service', note: 'Who signs in', place: SERVER },
  'users-of-accounts': { use: 'service', note: 'Whether the users of accounts exist', place: SERVER },
  'similar-names': { use: 'service', note: 'Warning of similar names', place: SERVER },
  spelling: { use: 'service', note: 'Suggestion for a mistyped name', place: SERVER },
} as const satisfies Record<string, PurposeText>

type Table = typeof PURPOSES
type PurposeOf<Use> = {
  [Name in keyof Table]: Table[Name]['use'] extends Use ? Name : never
}[keyof Table]

export type Purpose = Exclude<keyof Table, 'administration' | 'data-export'>
export type ServicePurpose = PurposeOf<'service'>
export type AdministrationPurpose = Extract<PurposeOf<'administration'>, Purpose>

const byNote: ReadonlyMap<string, PurposeText> = new Map(
  Object.values(PURPOSES).map(purpose => [purpose.note, purpose]),
)

/** The purpose of a request of the auth server. Undefined for requests of apps, and in records before version 0.4. */
export function findPurpose({
  client_id,
  reason,
}: {
  readonly client_id: string | null
  readonly reason: string | null
}): PurposeText | undefined {
  return client_id === PORTAL_CLIENT && reason !== null ? byNote.get(reason) : undefined
}
