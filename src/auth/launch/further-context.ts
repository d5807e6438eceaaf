import { isId, isRecord, isResourceType } from '../../fhir/index.ts'
import { LIMITS } from '../limits.ts'

/** What a launch tells the app beside patient, encounter and banner (SMART 2.2, launch context). */
export interface FurtherContext {
  readonly intent?: string
  readonly tenant?: string
  readonly fhirContext?: readonly FhirContextItem[]
}

/** One more resource that is in context. At least one of `reference`, `canonical`, `identifier` is there. */
export interface FhirContextItem {
  readonly reference?: string
  readonly canonical?: string
  readonly identifier?: Readonly<Record<string, unknown>>
  readonly type?: string
  readonly role?: string
}

const MEMBERS: ReadonlySet<string> = new Set(['reference', 'canonical', 'identifier', 'type', 'role'])

/** The items of a `fhirContext`, or what is wrong with it in words for a developer. */
export function readFhirContext(value: unknown): readonly FhirContextItem[] | string {
  if (!Array.isArray(value) || value.length > LIMITS.fhirContextItems)
    return `fhirContext must be an array of at most ${LIMITS.fhirContextItems} objects`
  for (const item of value) {
    const fault = isRecord(item) ? faultOf(item) : 'each item of fhirContext must be an object'
    if (fault !== undefined) return fault
  }
  // It is stored with the launch, and comes again with every token.
  return JSON.stringify(value).length > LIMITS.fhirContextCharacters
    ? `fhirContext must be at most ${LIMITS.fhirContextCharacters} characters of JSON`
    : value
}

/** `intent` and `tenant`: short, and without control characters. */
export function isShortText(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value.length >= 1 &&
    value.length <= LIMITS.contextTextCharacters &&
    !/\p{Cc}/u.test(value)
  )
}

type Item = Readonly<Record<string, unknown>>

function faultOf(item: Item): string | undefined {
  return faultOfMembers(item) ?? faultOfMeaning(item)
}

function faultOfMembers(item: Item): string | undefined {
  const { reference, canonical, identifier, type, role } = item
  const unknown = Object.keys(item).find(name => !MEMBERS.has(name))
  if (unknown !== undefined) return `fhirContext has no member ${JSON.stringify(unknown.slice(0, 40))}`
  if (reference === undefined && canonical === undefined && identifier === undefined)
    return 'each item of fhirContext needs a reference, a canonical or an identifier'
  if (canonical !== undefined && !isAddress(canonical))
    return 'a canonical of fhirContext must be an absolute address'
  if (identifier !== undefined && !isRecord(identifier))
    return 'an identifier of fhirContext must be an object'
  if (type !== undefined && !(typeof type === 'string' && isResourceType(type)))
    return 'a type of fhirContext must be a resource type'
  // SMART 2.2: an absent role means `launch`; roles of others are absolute addresses, and none is empty.
  if (role !== undefined && role !== 'launch' && !isAddress(role))
    return 'a role of fhirContext must be "launch" or an absolute address'
  return undefined
}

function faultOfMeaning({ reference, type, role = 'launch' }: Item): string | undefined {
  const referred = typeOf(reference)
  if (reference !== undefined && referred === undefined)
    return 'a reference of fhirContext must be relative, such as ImagingStudy/123'
  if (type !== undefined && referred !== undefined && type !== referred)
    return 'a type of fhirContext must be that of its reference'
  const about = referred ?? type
  if (role === 'launch' && (about === 'Patient' || about === 'Encounter'))
    return `${about} has a member of its own and belongs into fhirContext only with another role than launch`
  return undefined
}

/** The type of a relative reference. */
function typeOf(reference: unknown): string | undefined {
  const [type = '', id = '', ...rest] = typeof reference === 'string' ? reference.split('/') : []
  return rest.length === 0 && isResourceType(type) && isId(id) ? type : undefined
}

function isAddress(value: unknown): boolean {
  return typeof value === 'string' && value.length <= LIMITS.fhirContextUrlCharacters && URL.canParse(value)
}
