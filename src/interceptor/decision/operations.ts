import type { Letter } from '../../scope/index.ts'

/** An operation that is let through, and what it needs (contract 5.2: all others are refused). */
export interface OperationRule {
  readonly level: 'type' | 'instance'
  /** The types it may be called on. */
  readonly types: readonly string[] | 'any'
  /** Whether it needs all of the letters on that type, or any. What it answers with is limited by the grant besides. */
  readonly need: 'all' | 'any'
  readonly letters: readonly [Letter, ...Letter[]]
}

const OPERATIONS: Readonly<Record<string, readonly OperationRule[]>> = {
  $everything: [{ level: 'instance', types: ['Patient'], need: 'all', letters: ['r', 's'] }],
  $validate: [
    // Touches no stored resource: whoever may do anything with the type may ask.
    { level: 'type', types: 'any', need: 'any', letters: ['c', 'r', 'u', 'd', 's'] },
    { level: 'instance', types: 'any', need: 'all', letters: ['r'] },
  ],
}

export function operationRule(name: string, type: string | undefined, id: string | undefined) {
  if (type === undefined || !Object.hasOwn(OPERATIONS, name)) return undefined
  const level = id === undefined ? 'type' : 'instance'
  return OPERATIONS[name]?.find(
    rule => rule.level === level && (rule.types === 'any' || rule.types.includes(type)),
  )
}
