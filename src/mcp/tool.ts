import type { Static, TObject } from 'typebox'
import { type Failed, fail } from '../core/index.ts'
import { type Because, type CallReason, failFor } from '../fhir/index.ts'
import type { ProposedChange } from '../proposals/index.ts'
import type { Grant } from '../smart/index.ts'
import { RESULT_CHARACTERS } from './limits.ts'
import type { OwnProposals } from './proposals.ts'

/** A tool: its name and schemas, the FHIR requests that it makes, and how it says the result. */
export interface Tool<Arguments extends TObject = TObject> {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly input: Arguments
  /** Of the content of a result. */
  readonly output: TObject
  /** Whether a token can use it. */
  isUsableBy(grant: Grant): boolean
  /** Whether it keeps something. */
  readonly keeps?: true
  call(call: Call, given: Static<Arguments>): Promise<ToolResult | ToolFault>
}

/** The same twice: for programs, and as short text for a model. */
export interface ToolResult {
  readonly content: object
  readonly text: string
}

/** Whether a model can read all of it. Few texts are so long that the rest has to be counted. */
export function isShortEnough({ content, text }: ToolResult): boolean {
  return text.length < RESULT_CHARACTERS / 10 || JSON.stringify({ content, text }).length < RESULT_CHARACTERS
}

/** Why a tool has no result, in words that help a model to call it right. */
export type ToolFault = Misused | LackingScopes

interface Misused extends Failed {
  readonly reason: 'misused'
  readonly text: string
  /** For the audit trail, unless a FHIR request is recorded. */
  readonly refusal: Because<CallReason>
}

export interface LackingScopes extends Failed {
  readonly reason: 'lacking-scopes'
  readonly text: string
  /** The scopes that the call needs. */
  readonly scopes: readonly string[]
}

export function failCall(text: string, refusal: Because<CallReason> = failFor('tool-misused')): Misused {
  return fail({ reason: 'misused', text, refusal })
}

export type FhirJson = Readonly<Record<string, unknown>>

/** A page of a search. */
export interface ResultPage {
  /** The matches, then what they include. */
  readonly resources: readonly FhirJson[]
  readonly total: number | undefined
  /** The URL of the next page. */
  readonly next: string | undefined
  /** What the server says about the search, such as that the result is not complete. */
  readonly notes: readonly string[]
}

/** A call of a tool. */
export interface Call {
  readonly baseUrl: string
  readonly grant: Grant
  readonly now: number
  /** The parameter of page links. */
  readonly pageParameter: string
  /** Sends a request below the FHIR base for the caller, and returns the resource of the response. */
  fetch(url: string, body?: object): Promise<FhirJson | ToolFault>
  /** Sends a search below the FHIR base for the caller. */
  search(url: string): Promise<ResultPage | ToolFault>
  /** Decides, validates and checks a change as the request that would make it, and makes nothing. */
  tryChange(change: TriedChange): Promise<SeenVersion | ToolFault>
  /** Whether it has made a FHIR request, which is recorded. */
  readonly hasRequested: () => boolean
  readonly proposals: OwnProposals
  /** The arguments as exact JSON (`parseExact`). */
  readExact(): FhirJson
}

export interface TriedChange extends Pick<ProposedChange, 'action' | 'type' | 'id'> {
  /** Exact JSON. */
  readonly body: unknown
}

export interface SeenVersion {
  /** The `ETag` of the version that the change would replace. */
  readonly version?: string
}

/** Checks the types of a tool's arguments, and makes it one of the list. */
export function defineTool<Arguments extends TObject>(tool: Tool<Arguments>): Tool {
  return tool as unknown as Tool
}
