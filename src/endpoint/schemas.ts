import { type TSchema, Type } from 'typebox'

/** Unknown members are refused. */
export const CLOSED = { additionalProperties: false } as const

export const NONE = Type.Object({}, CLOSED)

/** One of these texts. */
export function OneOf<Text extends string>(
  texts: readonly Text[],
  options: { readonly default?: Text; readonly description?: string } = {},
) {
  return Type.Unsafe<Text>(
    Type.Union(
      texts.map(text => Type.Literal(text)),
      options,
    ),
  )
}

export const Time = Type.String({ format: 'date-time' })

export function formatTime(at: number): string {
  return new Date(at).toISOString()
}

export function PageOf<Item extends TSchema>(item: Item) {
  return Type.Object(
    {
      items: Type.Array(item),
      next: Type.Optional(
        Type.String({ description: 'For `after` of the next page. Absent on the last page.' }),
      ),
    },
    CLOSED,
  )
}
