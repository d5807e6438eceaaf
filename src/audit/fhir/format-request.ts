import { findSearchParameter, type Interaction, type Misunderstood, type Params } from '../../fhir/index.ts'

const PLAIN: ReadonlySet<string> = new Set([
  '_at',
  '_count',
  '_elements',
  '_format',
  '_id',
  '_include',
  '_lastUpdated',
  '_pretty',
  '_revinclude',
  '_since',
  '_sort',
  '_summary',
  '_total',
  '_type',
])

/** Search parameters of a harmless type whose values still identify a person. */
const PERSONAL: ReadonlySet<string> = new Set([
  'identifier',
  'email',
  'phone',
  'telecom',
  'birthdate',
  'death-date',
  'deathdate',
  'address-postalcode',
])

const SHOWN_TYPES: ReadonlySet<string> = new Set(['token', 'date', 'number', 'quantity', 'reference'])
const HIDING_MODIFIERS: ReadonlySet<string> = new Set(['text', 'exact', 'contains', 'identifier', 'of-type'])
const SHOWN_TEXT = /^[\w|:/.,+$-]{1,160}$/

const HIDDEN = '…'

const known = new Map<string, boolean>()

/** Codes, dates and ids may be stored and shown; free text may not. */
function redactValue(type: string | undefined, name: string, value: string): string {
  const key = `${type ?? ''} ${name}`
  let shown = known.get(key)
  if (shown === undefined) {
    shown = isShown(type, name)
    // Callers choose the names: an unlimited map would grow without end.
    if (known.size < 5000) known.set(key, shown)
  }
  return shown && SHOWN_TEXT.test(value) ? value : HIDDEN
}

function isShown(type: string | undefined, name: string): boolean {
  const [code = '', modifier = ''] = name.split(':')
  if (name.includes('.') || name.startsWith('_has:') || HIDING_MODIFIERS.has(modifier)) return false
  if (PLAIN.has(code)) return true
  if (type === undefined || PERSONAL.has(code)) return false
  const parameter = findSearchParameter(type, code)
  return parameter !== undefined && SHOWN_TYPES.has(parameter.type)
}

/** The request below the FHIR base, without personal values: `Patient?name=…&_count=20`. */
export function formatRequest(interaction: Interaction | Misunderstood, address = ''): string {
  if (interaction.kind === 'misunderstood') return redactUrl(address)
  const path = pathOf(interaction)
  const type = 'type' in interaction && interaction.type !== '*' ? interaction.type : undefined
  const params = 'params' in interaction ? interaction.params : []
  return params.length === 0 ? path : `${path}?${queryText(type, params)}`
}

function queryText(type: string | undefined, params: Params): string {
  return params
    .map(([name, value]) => `${SAFE_NAME.test(name) ? name : HIDDEN}=${redactValue(type, name, value)}`)
    .join('&')
}

const SAFE_NAME = /^[\w:.-]{1,80}$/

function pathOf(interaction: Interaction): string {
  switch (interaction.kind) {
    case 'capabilities':
      return 'metadata'
    case 'smart-configuration':
      return '.well-known/smart-configuration'
    case 'read':
    case 'update':
    case 'patch':
    case 'delete':
      return `${interaction.type}/${interaction.id}`
    case 'vread':
      return `${interaction.type}/${interaction.id}/_history/${interaction.version}`
    case 'history-instance':
      return `${interaction.type}/${interaction.id}/_history`
    case 'history-type':
      return `${interaction.type}/_history`
    case 'history-system':
      return '_history'
    case 'search-type':
      return interaction.posted ? `${interaction.type}/_search` : interaction.type
    case 'search-system':
      return interaction.posted ? '_search' : ''
    case 'search-compartment':
      return `${interaction.compartment}/${interaction.id}/${interaction.type}${interaction.posted ? '/_search' : ''}`
    case 'create':
    case 'update-conditional':
    case 'patch-conditional':
    case 'delete-conditional':
      return interaction.type
    case 'bundle':
      return ''
    case 'operation':
      return [interaction.type, interaction.id, interaction.name].filter(it => it !== undefined).join('/')
  }
}

const SAFE_SEGMENT = /^(?:[A-Z][A-Za-z]{1,40}|[_$][A-Za-z-]{1,40}|[A-Za-z0-9-]{1,64})$/

/** A URL that is not a FHIR interaction may contain anything: only the parts that look like FHIR are stored. */
function redactUrl(address: string): string {
  const at = address.indexOf('?')
  const path = (at < 0 ? address : address.slice(0, at)).replace(/^\//, '')
  const segments = path.split('/', 8).map(it => (it === '' || SAFE_SEGMENT.test(it) ? it : HIDDEN))
  return `${segments.join('/')}${at < 0 ? '' : `?${HIDDEN}`}`
}
