import { type Failed, fail } from './failure.ts'
import { remember } from './remember.ts'

/** A reason within another one, such as why a value is not accepted. */
export interface InnerReason {
  readonly reason: string
  readonly facts: StoredFacts
}

type Fact = string | number | InnerReason | readonly InnerReason[]

/** Facts of a failure by their names, as the audit trail stores them. */
export type StoredFacts = { readonly [name: string]: Fact }

type NamesIn<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never

/** The facts that the texts of a row name: in a text, `{name}` stands for the fact of this name. */
export type FactsIn<Row> = Readonly<Record<NamesIn<Row[keyof Row]>, Fact>>

/** A reason without facts may omit them. */
export type FactsArgument<Facts> = Record<never, never> extends Facts ? [facts?: Facts] : [facts: Facts]

/** The rows of several tables. No key is in two. */
export type RowsOf<Tables> = {
  readonly [Key in KeysIn<Tables[keyof Tables]>]: Extract<
    Tables[keyof Tables],
    Readonly<Record<Key, unknown>>
  >[Key]
}

type KeysIn<Table> = Table extends unknown ? keyof Table : never

/** Joins tables, which their titles divide for a reader. */
export function joinTables<Tables extends Readonly<Record<string, object>>>(tables: Tables): RowsOf<Tables> {
  return Object.assign({}, ...Object.values(tables))
}

/** A failure that names its reason. No fact is a token or data of a patient. */
export interface NamedFailure<Reason extends PropertyKey = string> extends Failed {
  readonly reason: Reason
  readonly facts: StoredFacts
}

const NONE: StoredFacts = {}

/** Fails for a reason of a table. A sentence is made only when it is needed. */
export type FailBy<Table> = <const Reason extends keyof Table>(
  reason: Reason,
  ...[facts]: FactsArgument<FactsIn<Table[Reason]>>
) => NamedFailure<Reason>

export function failBy<Table>(): FailBy<Table> {
  return (reason, ...[facts]) => fail({ reason, facts: facts ?? NONE })
}

/**
 * Replaces the names of facts. A fact that an older record lacks is left out. `describe` has the words of inner reasons: a
 * sentence that ends with a full stop has none of its own before that of the text.
 */
export function fill(
  text: string,
  facts: StoredFacts,
  describe: (inner: InnerReason) => string = ({ reason }) => reason,
): string {
  if (!text.includes('{')) return text
  let filled = ''
  for (const [at, part] of remember(split, text, divide).entries())
    if (at % 2 === 1) filled += formatFact(facts[part] ?? '…', describe)
    else filled += part.startsWith('.') && filled.endsWith('.') ? part.slice(1) : part
  return filled
}

/** Sentences follow each other; parts of one are separated. */
function formatFact(fact: Fact, describe: (inner: InnerReason) => string): string {
  if (typeof fact !== 'object') return String(fact)
  if ('reason' in fact) return describe(fact)
  const texts = fact.map(describe)
  return texts.some(text => /^[A-Z]/.test(text))
    ? texts.map(text => (text.endsWith('.') ? text : `${text}.`)).join(' ')
    : texts.join('; ')
}

/** The texts of tables, which are few: a regular expression for each refusal would take longer than the decision. */
const split = new Map<string, readonly string[]>()

/** The text before a name, the name, the text after it, and so on. */
function divide(text: string): readonly string[] {
  return text.split(/\{(\w+)\}/)
}
