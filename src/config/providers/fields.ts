import { isRecord } from '../../core/index.ts'
import type { SettingType } from '../setting-types.ts'
import * as types from '../setting-types.ts'
import { readEach, SettingsError } from '../settings-error.ts'

/** Selects users by a claim: one of its values must be listed. */
export interface ClaimRule {
  readonly claim: string
  readonly values: readonly string[]
}

/** How a user's Practitioner, or Patient, follows from the claims. */
export type FhirUserRule =
  | { readonly kind: 'claim'; readonly claim: string }
  | { readonly kind: 'template'; readonly template: string }
  | { readonly kind: 'search'; readonly search: string }

export interface ProviderField<T> {
  readonly expected: string
  read(value: unknown): T | undefined
  /** The value of a field that is not there. A field without it must be there. */
  readonly otherwise?: { readonly value: T }
}

export function defineRequired<T>({ expected, separator, parse }: SettingType<T>): ProviderField<T> {
  const read = (value: unknown) => {
    const text = Array.isArray(value) && separator !== undefined ? value.join(separator) : value
    return typeof text === 'object' ? undefined : parse(String(text))
  }
  return { expected, read }
}

export function defineOptional<T>(type: SettingType<T>): ProviderField<T | undefined>
export function defineOptional<T>(type: SettingType<T>, value: T): ProviderField<T>
export function defineOptional<T>(type: SettingType<T>, value?: T): ProviderField<T | undefined> {
  return { ...defineRequired(type), otherwise: { value } }
}

const nestedFhirUser: ProviderField<FhirUserRule | undefined> = {
  otherwise: { value: undefined },
  expected: 'exactly one of claim, template and search',
  read: value => {
    const [entry, ...more] = isRecord(value) ? Object.entries(value) : []
    if (entry === undefined || more.length > 0 || typeof entry[1] !== 'string') return undefined
    return makeFhirUserRule(entry[0], entry[1])
  },
}

const nestedClaimRule: ProviderField<ClaimRule | undefined> = {
  otherwise: { value: undefined },
  expected: 'a claim and a list of values',
  read: value => {
    if (!isRecord(value) || Object.keys(value).length !== 2) return undefined
    const { claim, values } = value
    return typeof claim === 'string' && Array.isArray(values) ? makeClaimRule(claim, values) : undefined
  },
}

function makeClaimRule(claim: string, values: readonly unknown[]): ClaimRule | undefined {
  const texts = values.flatMap(value =>
    typeof value === 'string' && value.trim() !== '' ? [value.trim()] : [],
  )
  return claim.trim() === '' || texts.length === 0 || texts.length !== values.length
    ? undefined
    : { claim: claim.trim(), values: texts }
}

function makeFhirUserRule(kind: string, text: string): FhirUserRule | undefined {
  if (kind === 'claim') return /^[^\s{}?]+$/.test(text) ? { kind, claim: text } : undefined
  const placeholder = /\{[^{}\s]+\}/.test(text)
  if (kind === 'template')
    return placeholder && /^(?:Practitioner|Patient)\/[^?\s]+$/.test(text)
      ? { kind, template: text }
      : undefined
  if (kind === 'search')
    return placeholder && /^(?:Practitioner|Patient)\?[^\s=]+=\S+$/.test(text)
      ? { kind, search: text }
      : undefined
  return undefined
}

export const PROVIDER_KINDS = ['oidc', 'ldap'] as const

/** The settings that every provider has. Each kind has its own default of the claims. */
export const COMMON = {
  /** In URLs and logs. */
  id: defineRequired(types.providerId),
  /** On the sign-in page. */
  name: defineOptional(types.headerText),
  kind: defineOptional(types.oneOf(...PROVIDER_KINDS)),
  'username-claim': defineRequired(types.claimName),
  'display-name-claim': defineRequired(types.claimName),
  'fhir-user': nestedFhirUser,
  /** Undefined: every user of the provider. */
  allow: nestedClaimRule,
  /** Undefined: no administrators. */
  admin: nestedClaimRule,
  /** Whether an unknown user gets an account. */
  provision: defineOptional(types.flag, false),
}

type CamelCase<Name> = Name extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name
/** The values of fields: `client-id` becomes `clientId`. */
export type Read<Fields> = {
  readonly [Name in keyof Fields as CamelCase<Name>]: Fields[Name] extends ProviderField<infer T> ? T : never
}

export function readFields<Fields extends Readonly<Record<string, ProviderField<unknown>>>>(
  fields: Fields,
  entry: Readonly<Record<string, unknown>>,
  label: string,
): Read<Fields> {
  const unknown = Object.keys(entry).filter(name => !Object.hasOwn(fields, name))
  const checks = [
    ...unknown.map(name => () => {
      throw createFault(label, `unknown setting ${name}; expected ${Object.keys(fields).join(', ')}`)
    }),
    ...Object.entries(fields).map(([name, field]) => () => [
      name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase()),
      readField(name, field, entry[name], label),
    ]),
  ]
  return Object.fromEntries(readEach(checks, check => check()) as [string, unknown][]) as Read<Fields>
}

function readField(name: string, field: ProviderField<unknown>, value: unknown, label: string): unknown {
  if (value === undefined && field.otherwise) return field.otherwise.value
  if (value === undefined) throw createFault(label, `${name} is missing`)
  const read = field.read(value)
  if (read === undefined) throw createFault(label, `${name}: expected ${field.expected}`)
  return read
}

export function createFault(label: string, problem: string): SettingsError {
  return new SettingsError(`Cannot use smart.login.providers: ${label}: ${problem}`)
}
