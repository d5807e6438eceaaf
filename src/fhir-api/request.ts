import type {
  Entries,
  FhirProblem,
  Interaction,
  ParsedChains,
  Preconditions,
  Preferences,
  Work,
} from '../fhir/index.ts'
import type { Access, Authenticated } from '../smart/index.ts'
import type { Failure } from './response.ts'

export type Kind = Interaction['kind']

export type InteractionOf<K extends Kind> = Extract<Interaction, { readonly kind: K }>

export type Search = InteractionOf<'search-type' | 'search-system' | 'search-compartment'>

export type History = InteractionOf<'history-instance' | 'history-type' | 'history-system'>

export type Operation = InteractionOf<'operation'>

export interface CallerConnection {
  /** Whether it is closed. */
  readonly destroyed: boolean
  once(event: 'close', listener: () => void): unknown
}

/** Content that still arrives from the client. It is read once. */
export interface StreamedContent extends AsyncIterable<Buffer> {
  /** In bytes, if the client has stated it. */
  readonly length: number | undefined
  /** Why it has ended with an error, unless the client has disconnected. */
  readonly failure: Failure | undefined
}

/** An allowed and parsed request: an HTTP request, or an entry of a Bundle. */
export interface FhirRequest<I extends Interaction = Interaction> {
  readonly interaction: I
  /** Exact JSON (`parseExact`), if any. */
  readonly body?: unknown
  /** The content of a Binary that is too large for memory. `body` is the Binary without it. */
  readonly content?: StreamedContent | undefined
  /** The entries of a Bundle. */
  readonly entries?: Entries | FhirProblem | undefined
  readonly preconditions: Preconditions
  readonly preferences: Preferences
  readonly access: Access
  /** The work that is left for the request. The entries of a Bundle share it. */
  readonly work: Work
  /** The chained parameters of the search or of the condition, as the decision has parsed them. */
  readonly chains?: ParsedChains | undefined
  /** The scopes without which the includes of the search add nothing. */
  readonly lacks?: readonly string[] | undefined
  /** The scope that allowed the request, for the audit trail. */
  readonly by?: string | undefined
  /** Decides the interactions within this one: the entries of a Bundle, the search of a page. */
  readonly authenticated: Authenticated
  /** Whether the token was revoked after the request had begun. */
  readonly isRevoked: () => Promise<boolean>
  readonly requestId: string
  readonly connection: CallerConnection
  /** Logs an error that does not become the response to the whole request. */
  readonly report: (error: unknown) => void
  /** An entry of a Bundle. Its response becomes part of another one, so that it must not be a stream. */
  readonly isEntry?: true
  /** A change that is planned and checked, but not made: an assistant proposes it. */
  readonly isTrial?: true
  /** The way in takes the page of the search as values (`FhirResponse.searchset`). */
  readonly takesSearchset?: true
  /** A transaction that the API has made of one write. Its response is that to the first entry. */
  readonly isComposed?: true
}

/** The path of an interaction below the base, from the parsed interaction and not from the URL sent. */
export function getPath(interaction: Interaction): string {
  switch (interaction.kind) {
    case 'capabilities':
      return '/metadata'
    case 'smart-configuration':
      return '/.well-known/smart-configuration'
    case 'read':
    case 'update':
    case 'patch':
    case 'delete':
      return `/${interaction.type}/${interaction.id}`
    case 'vread':
      return `/${interaction.type}/${interaction.id}/_history/${interaction.version}`
    case 'history-instance':
      return `/${interaction.type}/${interaction.id}/_history`
    case 'history-type':
      return `/${interaction.type}/_history`
    case 'history-system':
      return '/_history'
    case 'search-type':
    case 'create':
    case 'update-conditional':
    case 'patch-conditional':
    case 'delete-conditional':
      return `/${interaction.type}`
    case 'search-system':
    case 'bundle':
      return ''
    case 'search-compartment':
      return `/${interaction.compartment}/${interaction.id}/${interaction.type}`
    case 'operation': {
      const { type, id, name } = interaction
      return `${type === undefined ? '' : `/${type}`}${id === undefined ? '' : `/${id}`}/${name}`
    }
  }
}

/** The excluded type that an interaction names: its own, one of `_type`, or one that it includes. */
export function findExcludedType(
  interaction: Interaction,
  excluded: ReadonlySet<string>,
): string | undefined {
  if ('type' in interaction && interaction.type !== undefined && excluded.has(interaction.type))
    return interaction.type
  // An export looks at its own types.
  if (!('params' in interaction) || ('name' in interaction && interaction.name === '$export'))
    return undefined
  return interaction.params
    .filter(([name]) => name === '_type' || /^_(?:rev)?include(?::|$)/.test(name))
    .flatMap(([, value]) => value.split(/[,:]/))
    .find(word => excluded.has(word))
}
