/** Facts of a failure by their names, as the audit trail stores them. */
export type StoredFacts = Readonly<Record<string, string | number>>

type NamesIn<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never

/** The facts that the texts of a row name: in a text, `{name}` stands for the fact of this name. */
export type FactsIn<Row> = Readonly<Record<NamesIn<Row[keyof Row]>, string | number>>

/** A reason without facts may omit them. */
export type FactsArgument<Facts> = Record<never, never> extends Facts ? [facts?: Facts] : [facts: Facts]

/** Replaces the names of facts. A fact that an older record lacks is left out. */
export function fill(text: string, facts: StoredFacts): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => String(facts[name] ?? '…'))
}
