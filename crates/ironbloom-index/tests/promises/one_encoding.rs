//! What means the same is the same, whatever type stores it; what does not is not.

use std::sync::Arc;

use arrow::array::types::Int16Type;
use arrow::array::*;
use arrow::buffer::NullBuffer;
use arrow::datatypes::i256;
use ironbloom_index::{
    Error, IndexBuilder, Params, Predicate, Value, ValueKind, columns_of, hash_value,
};

/// Is the value found in a column that holds just this array? One row a block and an exact answer: few wrong yeses.
fn found(array: ArrayRef, value: &Value) -> Result<Vec<u64>, Error> {
    let batch = RecordBatch::try_from_iter_with_nullable([("c", array, true)]).unwrap();
    let mut builder = IndexBuilder::new(columns_of(&batch.schema())?, Params::new(1, 20).unwrap())?;
    builder.push(&batch)?;
    let found = builder.finish()?.candidates(&Predicate::Eq("c".into(), value.clone()))?;
    Ok(found.blocks.iter().map(|block| block.first_row).collect())
}

fn assert_found(array: impl Array + 'static, value: Value, rows: &[u64]) {
    let kind = array.data_type().to_string();
    assert_eq!(found(Arc::new(array), &value).unwrap(), rows, "{value:?} in {kind}");
}

#[test]
fn integers_of_all_widths_are_one() {
    let seven = || Value::Int(7);
    assert_found(Int8Array::from(vec![1, 7, -7]), seven(), &[1]);
    assert_found(Int16Array::from(vec![1, 7, -7]), seven(), &[1]);
    assert_found(Int32Array::from(vec![1, 7, -7]), seven(), &[1]);
    assert_found(Int64Array::from(vec![1, 7, -7]), seven(), &[1]);
    assert_found(UInt8Array::from(vec![1, 7, 249]), seven(), &[1]);
    assert_found(UInt16Array::from(vec![1, 7, 9]), seven(), &[1]);
    assert_found(UInt32Array::from(vec![1, 7, 9]), seven(), &[1]);
    assert_found(UInt64Array::from(vec![1, 7, u64::MAX - 6]), seven(), &[1]);
    assert_found(Int8Array::from(vec![1, 7, -7]), Value::Int(-7), &[2]);
    assert_found(Int64Array::from(vec![i64::MIN]), Value::Int(i64::MIN.into()), &[0]);
    // -7 as 64 bits without a sign is another number.
    assert_found(UInt64Array::from(vec![(-7i64).cast_unsigned()]), Value::Int(-7), &[]);
    assert_found(UInt64Array::from(vec![u64::MAX]), Value::Int(u64::MAX.into()), &[0]);
}

#[test]
fn texts_are_one_however_stored_and_are_not_bytes_nor_numbers() {
    let texts = ["6", "7", "a longer text, beyond the twelve bytes of a view"];
    for (row, text) in (0..).zip(texts) {
        let value = || Value::Text(text.into());
        assert_found(StringArray::from_iter_values(texts), value(), &[row]);
        assert_found(LargeStringArray::from_iter_values(texts), value(), &[row]);
        assert_found(StringViewArray::from_iter_values(texts), value(), &[row]);
        let dictionary: DictionaryArray<Int16Type> = texts.into_iter().collect();
        assert_found(dictionary, value(), &[row]);
        let bytes = || Value::Bytes(text.into());
        assert_found(BinaryArray::from_iter_values(texts), bytes(), &[row]);
        assert_found(LargeBinaryArray::from_iter_values(texts), bytes(), &[row]);
        assert_found(BinaryViewArray::from_iter_values(texts), bytes(), &[row]);
    }
    let fixed = FixedSizeBinaryArray::try_from_iter([b"ab", b"cd"].into_iter()).unwrap();
    assert_found(fixed, Value::Bytes(b"cd".into()), &[1]);
    let seven = [
        Value::Text("7".into()),
        Value::Bytes("7".into()),
        Value::Int(7),
        Value::Float(7.0),
        Value::Date(7),
        Value::Timestamp(7),
        Value::Decimal { digits: 7, scale: 0 },
        Value::Bool(true),
        Value::Int(1),
    ];
    let hashes: Vec<_> = seven.iter().map(hash_value).collect();
    for (i, hash) in hashes.iter().enumerate() {
        assert!(!hashes[..i].contains(hash), "{:?}", seven[i]);
    }
}

#[test]
fn floats_widen_and_have_one_nan_and_one_zero() {
    let negative_nan = f64::from_bits(0xfff8_0000_0000_0001);
    assert_found(Float32Array::from(vec![1.5, 2.5]), Value::Float(2.5), &[1]);
    assert_found(Float64Array::from(vec![1.5, 2.5]), Value::Float(2.5), &[1]);
    assert_found(Float32Array::from(vec![0.1]), Value::Float(0.1f32.into()), &[0]);
    assert_found(Float32Array::from(vec![0.1]), Value::Float(0.1), &[0]);
    assert_found(Float64Array::from(vec![0.0, -0.0, 1.0]), Value::Float(-0.0), &[0, 1]);
    assert_found(Float32Array::from(vec![f32::NAN, 1.0]), Value::Float(negative_nan), &[0]);
    assert_found(Float64Array::from(vec![negative_nan, 1.0]), Value::Float(f64::NAN), &[0]);
}

#[test]
fn days_and_moments_are_one_in_every_unit() {
    assert_found(Date32Array::from(vec![-1, 19_000]), Value::Date(19_000), &[1]);
    assert_found(Date64Array::from(vec![-86_400_000, 0]), Value::Date(-1), &[0]);
    let moment = || Value::Timestamp(-1_500_000_000_000);
    assert_found(TimestampSecondArray::from(vec![0, -1_500]), moment(), &[1]);
    assert_found(TimestampMillisecondArray::from(vec![0, -1_500_000]), moment(), &[1]);
    assert_found(TimestampMicrosecondArray::from(vec![0, -1_500_000_000]), moment(), &[1]);
    let nanoseconds = TimestampNanosecondArray::from(vec![0, -1_500_000_000_000]);
    assert_found(nanoseconds.clone(), moment(), &[1]);
    assert_found(nanoseconds.with_timezone("Europe/Berlin"), moment(), &[1]);
    // Seconds reach beyond what 64 bits of nanoseconds can say.
    let far = Value::Timestamp(i128::from(i64::MAX) * 1_000_000_000);
    assert_found(TimestampSecondArray::from(vec![i64::MAX]), far, &[0]);
}

#[test]
fn decimals_are_one_at_every_scale_and_width() {
    let value = || Value::Decimal { digits: 15, scale: 1 };
    let wide = |digits: i128| i256::from_i128(digits);
    assert_found(
        Decimal32Array::from(vec![150, 15]).with_precision_and_scale(9, 2).unwrap(),
        value(),
        &[0],
    );
    assert_found(
        Decimal64Array::from(vec![150, 15]).with_precision_and_scale(18, 2).unwrap(),
        value(),
        &[0],
    );
    assert_found(
        Decimal128Array::from(vec![150, 15]).with_precision_and_scale(38, 2).unwrap(),
        value(),
        &[0],
    );
    let decimals = Decimal256Array::from(vec![wide(150), wide(15)]);
    assert_found(decimals.with_precision_and_scale(76, 2).unwrap(), value(), &[0]);
    // Literals may come with zeros, too.
    let literal = Value::Decimal { digits: 1500, scale: 3 };
    assert_eq!(hash_value(&literal), hash_value(&value()));
    let zero = Value::Decimal { digits: 0, scale: 5 };
    assert_found(
        Decimal128Array::from(vec![0, 1]).with_precision_and_scale(10, 2).unwrap(),
        zero,
        &[0],
    );
    let hundred = Value::Decimal { digits: 1, scale: -2 };
    assert_found(
        Decimal128Array::from(vec![10_000]).with_precision_and_scale(10, 2).unwrap(),
        hundred,
        &[0],
    );
    // 10^40 needs more than 128 bits, its digits without zeros do not.
    let large = i256::from_i128(10i128.pow(20)) * i256::from_i128(10i128.pow(20));
    let decimals = Decimal256Array::from(vec![large, large + i256::ONE]);
    let large = Value::Decimal { digits: 1, scale: -40 };
    assert_found(decimals.with_precision_and_scale(76, 0).unwrap(), large, &[0]);
}

#[test]
fn booleans_and_nulls_have_their_places() {
    let flags = BooleanArray::from(vec![Some(true), None, Some(false)]);
    assert_found(flags.clone(), Value::Bool(true), &[0]);
    assert_found(flags.clone(), Value::Bool(false), &[2]);
    assert_found(flags, Value::Null, &[]);
    assert_found(Int32Array::from(vec![Some(0), None]), Value::Int(0), &[0]);
    assert_found(StringArray::from(vec![Some(""), None]), Value::Text(String::new()), &[0]);
    assert_found(NullArray::new(3), Value::Null, &[]);
    // Nulls of the keys and of the values, in a dictionary.
    let values = StringArray::from(vec![Some("a"), None]);
    let keys = Int16Array::from(vec![Some(0), Some(1), None, Some(0)]);
    let dictionary = DictionaryArray::new(keys, Arc::new(values));
    assert_found(dictionary, Value::Text("a".into()), &[0, 3]);
    // What a null covers is not seen.
    let covered = Int32Array::new(vec![7, 7].into(), Some(NullBuffer::from(vec![true, false])));
    assert_found(covered, Value::Int(7), &[0]);
    let none = DictionaryArray::<Int16Type>::new(
        Int16Array::from(vec![None]),
        Arc::new(StringArray::from(Vec::<&str>::new())),
    );
    assert_found(none, Value::Text(String::new()), &[]);
}

#[test]
fn a_value_of_another_kind_is_an_error_that_names_the_column() {
    let error = found(Arc::new(Int32Array::from(vec![7])), &Value::Text("7".into())).unwrap_err();
    assert!(matches!(&error, Error::Kind { expected: ValueKind::Int, .. }), "{error:?}");
    assert_eq!(error.to_string(), "column c holds integers, not text");
    let times = Time32SecondArray::from(vec![7]);
    let batch = RecordBatch::try_from_iter([("t", Arc::new(times) as ArrayRef)]).unwrap();
    let error = ironbloom_index::columns_named(&batch.schema(), &["t"]).unwrap_err();
    assert_eq!(error.to_string(), "column t: type Time32(s) cannot be indexed");
    assert!(matches!(columns_of(&batch.schema()), Err(Error::NoColumns)));
}

/// Pinned for ever: a change here is a change of every file ever written.
#[test]
fn hashes_never_change() {
    let hashes = [
        Value::Bool(true),
        Value::Int(7),
        Value::Int(1 << 100),
        Value::Float(7.0),
        Value::Text("7".into()),
        Value::Bytes("7".into()),
        Value::Date(7),
        Value::Timestamp(7),
        Value::Decimal { digits: 7, scale: 0 },
    ]
    .map(|value| hash_value(&value).unwrap());
    let pinned: [u64; 9] = [
        0xedcc_99d7_f740_3620,
        0x9e84_ea9c_2cab_9235,
        0x58c7_56f2_10aa_e4de,
        0xa32e_1fc0_7cbc_b291,
        0xbb7d_cc38_e7cd_0c10,
        0x8006_1b54_e41c_fb72,
        0xf32d_c98d_181a_912d,
        0x5817_a8c3_23c7_6657,
        0xeaf3_8ab8_b155_c1ea,
    ];
    assert_eq!(hashes, pinned);
}
