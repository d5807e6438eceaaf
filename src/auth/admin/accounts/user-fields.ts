import type { Selectable } from 'kysely'
import { type TSchema, Type } from 'typebox'
import type { Schema } from '../../../store/index.ts'
import { LIMITS } from '../../base/limits.ts'

/** A user of this server: a clinician, or the account of a patient or of related persons. */
export type UserKind = 'clinician' | 'account'

interface UserField {
  /** Its name in the API. */
  readonly member: string
  /** Texts and flags are read, stored and shown alike. The others have rules of their own. */
  readonly kind: 'text' | 'flag' | 'other'
  /** Where a text or a flag is stored. */
  readonly column?: keyof Selectable<Schema['clinician']>
  /** The type of others. */
  readonly schema?: TSchema
  /** Only users of this kind have it. */
  readonly of?: UserKind
  /** Only a new user can be given it, or only an existing one. */
  readonly when?: 'add' | 'set'
  /** A user cannot be without it. */
  readonly isRequired?: true
  /** On pages. */
  readonly label: string
  /** Below its field. */
  readonly hint?: string
  /** On the command line. A flag also has `--no-…`. */
  readonly option?: string
  /** In `--help`, also that of `--no-…`. */
  readonly help?: string
  readonly helpNot?: string
  /** In the OpenAPI document. */
  readonly about?: string
}

/** The properties of an account that an administrator sets. The API, the forms, the details page and the commands derive from these rows. */
export const USER_FIELDS = {
  username: {
    member: 'username',
    kind: 'other',
    schema: Type.String(),
    when: 'add',
    isRequired: true,
    label: 'Username',
  },
  displayName: {
    member: 'display_name',
    kind: 'text',
    column: 'display_name',
    isRequired: true,
    label: 'Name',
    option: 'display-name',
    help: 'name shown on pages',
  },
  fhirUser: {
    member: 'fhir_user',
    kind: 'other',
    schema: Type.String(),
    label: 'FHIR user',
    hint: 'Practitioner/<id>, Patient/<id> or RelatedPerson/<id>. For a relative you can leave it empty: the first of the related persons is then used. Leave it empty if the account opens no patient records.',
    about:
      '`Practitioner/1` for a clinician; `Patient/1`, or `RelatedPerson/1` for a user who is not a patient.',
  },
  records: {
    member: 'records',
    kind: 'other',
    schema: Type.Boolean(),
    of: 'clinician',
    label: 'Opens no patient records (administration only)',
    about:
      '`false`: the account has no `fhir_user`, and opens no patient records. Ends all sign-ins and the access of apps. A `fhir_user` undoes it.',
  },
  relatedPersons: {
    member: 'related_persons',
    kind: 'other',
    schema: Type.Array(Type.String(), { maxItems: LIMITS.relatedPersons }),
    of: 'account',
    label: 'Related persons',
    hint: 'For a person who acts for patients: RelatedPerson/<id>, one per line. Each names one patient. The FHIR server lists them: RelatedPerson?patient=<id>.',
    about: 'Ids.',
  },
  admin: {
    member: 'admin',
    kind: 'flag',
    column: 'admin',
    of: 'clinician',
    label: 'Administrator',
    option: 'admin',
    help: 'the clinician is an administrator',
    helpNot: 'the clinician is no longer an administrator',
    about: '`true` ends `auditor`.',
  },
  auditor: {
    member: 'auditor',
    kind: 'flag',
    column: 'auditor',
    of: 'clinician',
    label: 'Auditor',
    option: 'auditor',
    help: 'the clinician sees the administration area, changes nothing there, and is no administrator',
    helpNot: 'the clinician is no longer an auditor',
    about: '`true` ends `admin`.',
  },
  disabled: { member: 'disabled', kind: 'flag', column: 'disabled', when: 'set', label: 'Disabled' },
} as const satisfies Readonly<Record<string, UserField>>

export type UserProperty = keyof typeof USER_FIELDS

type PropertyOf<Kind> = {
  [Name in UserProperty]: (typeof USER_FIELDS)[Name]['kind'] extends Kind ? Name : never
}[UserProperty]

export type TextProperty = PropertyOf<'text'>
type FlagProperty = PropertyOf<'flag'>

/** Texts and flags. A text that is not known is empty. */
export type PlainValues = Readonly<Record<TextProperty, string> & Record<FlagProperty, boolean>>

/** The values that change, by property. */
export interface UserChanges extends Partial<OptionalValues> {
  readonly fhirUser?: string | undefined
  /** False removes the FHIR user: the account opens no records. A new FHIR user undoes it. */
  readonly records?: boolean | undefined
  readonly relatedPersons?: readonly string[] | undefined
}

type OptionalValues = { readonly [Name in keyof PlainValues]: PlainValues[Name] | undefined }

const ALL = Object.entries<UserField>(USER_FIELDS).map(([property, field]) => ({ ...field, property }))

/** The texts and flags of users of one kind, or of any. */
export function listPlainFields(kind?: UserKind) {
  return ALL.flatMap(({ column, ...field }) =>
    column !== undefined && (kind === undefined || field.of === undefined || field.of === kind)
      ? [{ ...field, column, property: field.property as keyof PlainValues }]
      : [],
  )
}

const PLAIN = listPlainFields()

export const TEXTS = PLAIN.flatMap(({ kind, property, ...field }) =>
  kind === 'text' ? [{ ...field, property: property as TextProperty }] : [],
)

/** The texts and flags of an account as they are stored. */
export function readPlainValues(row: Selectable<Schema['clinician']>): PlainValues {
  const values = PLAIN.map(({ property, column, kind }) => {
    const value = row[column] ?? ''
    return [property, kind === 'flag' ? Boolean(value) : value]
  })
  return Object.fromEntries(values)
}

type Columns = {
  readonly [Name in keyof PlainValues as (typeof USER_FIELDS)[Name]['column']]: PlainValues[Name]
}

export function toColumns(values: Partial<OptionalValues>): Columns {
  const columns = PLAIN.map(({ property, column, kind }) => {
    const none = kind === 'flag' ? false : ''
    return [column, values[property] ?? none]
  })
  return Object.fromEntries(columns)
}

/** The members that users of this kind do not have. */
export function listOthers(kind: UserKind): readonly string[] {
  return ALL.flatMap(({ member, of = kind }) => (of === kind ? [] : [member]))
}

/** The members that an administrator sets of a user of a kind. */
export function describeMembers(kind: UserKind, when: 'add' | 'set'): Readonly<Record<string, TSchema>> {
  const set = ALL.filter(field => (field.of ?? kind) === kind && (field.when ?? when) === when)
  return Object.fromEntries(
    set.map(field => {
      const { schema = field.kind === 'flag' ? Type.Boolean() : Type.String(), about } = field
      const described = about === undefined ? schema : Type.With(schema, { description: about })
      return [field.member, when === 'add' && field.isRequired ? described : Type.Optional(described)]
    }),
  )
}

/** The values of the members that are present. */
export function readMembers(
  members: Readonly<Record<string, unknown>>,
): UserChanges & { readonly username?: string } {
  const present = ALL.filter(({ member }) => members[member] !== undefined)
  return Object.fromEntries(present.map(({ member, property }) => [property, members[member]]))
}

/** The values that are given. */
export function listGiven(changes: UserChanges): Partial<Given> {
  return Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))
}

type Given = { readonly [Name in keyof UserChanges]-?: NonNullable<UserChanges[Name]> }

/** The texts in a form, which names them by property. */
export function readTexts(read: (property: TextProperty) => string): Readonly<Record<TextProperty, string>> {
  const texts = TEXTS.map(({ property }) => [property, read(property)])
  return Object.fromEntries(texts)
}
