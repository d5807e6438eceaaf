import type { Interaction, Misunderstood, Params } from '../../fhir/index.ts'
import { HIDDEN, shownValue } from './shown-value.ts'

/** What was asked, below the FHIR base, as it may be kept: `Patient?name=…&_count=20`. */
export function formatRequest(interaction: Interaction | Misunderstood, address = ''): string {
  if (interaction.kind === 'misunderstood') return strangeAddress(address)
  const path = pathOf(interaction)
  const type = 'type' in interaction && interaction.type !== '*' ? interaction.type : undefined
  const params = 'params' in interaction ? interaction.params : []
  return params.length === 0 ? path : `${path}?${queryText(type, params)}`
}

function queryText(type: string | undefined, params: Params): string {
  return params
    .map(([name, value]) => `${SAFE_NAME.test(name) ? name : HIDDEN}=${shownValue(type, name, value)}`)
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

/** An address that is no FHIR interaction may hold anything: only what looks like one is kept. */
function strangeAddress(address: string): string {
  const at = address.indexOf('?')
  const path = (at < 0 ? address : address.slice(0, at)).replace(/^\//, '')
  const segments = path.split('/', 8).map(it => (it === '' || SAFE_SEGMENT.test(it) ? it : HIDDEN))
  return `${segments.join('/')}${at < 0 ? '' : `?${HIDDEN}`}`
}
