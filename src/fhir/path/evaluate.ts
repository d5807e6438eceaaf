import { isRecord } from '../record.ts'
import type { CompiledPath, Move } from './compile.ts'

const nothing: readonly unknown[] = []

/** The values that a path leads to, in order, arrays flattened. They are as they came over the wire: not judged. */
export function evaluatePath(resource: unknown, path: CompiledPath): readonly unknown[] {
  let values: readonly unknown[] = [resource]
  for (const move of path.moves) {
    values = apply(values, move)
    if (values.length === 0) return nothing
  }
  return values
}

function apply(values: readonly unknown[], move: Move): readonly unknown[] {
  switch (move.kind) {
    case 'key':
      return valuesAt(values, move.key)
    case 'index':
      return values.slice(move.index, move.index + 1)
    case 'equals':
      return values.filter(it => isRecord(it) && it[move.name] === move.value)
    case 'refers':
      return values.filter(it => referredType(it) === move.type)
    case 'present':
      return values.map(it => move.keys.some(key => valuesAt([it], key).some(found => found !== false)))
  }
}

function valuesAt(values: readonly unknown[], key: string): readonly unknown[] {
  let found: unknown[] | undefined
  for (const value of values) {
    const next = isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined
    if (next === undefined || next === null) continue
    found ??= []
    if (!Array.isArray(next)) found.push(next)
    else for (const item of next) if (item !== null) found.push(item)
  }
  return found ?? nothing
}

/** The type that a Reference says it points to: by its address, else by `Reference.type`. */
function referredType(value: unknown): string | undefined {
  if (!isRecord(value)) return undefined
  const address = typeof value.reference === 'string' ? value.reference : ''
  const named = /(?:^|\/)([A-Z][A-Za-z]+)\/[A-Za-z0-9\-.]{1,64}(?:\/_history\/[A-Za-z0-9\-.]{1,64})?$/.exec(
    address,
  )
  return named?.[1] ?? (typeof value.type === 'string' ? value.type : undefined)
}
