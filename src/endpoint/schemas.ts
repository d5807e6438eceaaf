import { type TProperties, type TSchema, Type } from 'typebox'

/** An object with these members. Others are refused. */
export function Members<Of extends TProperties>(members: Of) {
  return Type.Object(members, { additionalProperties: false })
}

export const NONE = Members({})

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
  return Members({
    items: Type.Array(item),
    next: Type.Optional(
      Type.String({ description: 'For `after` of the next page. Absent on the last page.' }),
    ),
  })
}
