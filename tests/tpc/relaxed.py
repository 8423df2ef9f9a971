"""Predicates of TPC queries that select nothing from a tiny database, and what replaces them.

At scale factor 0.01 these 38 queries give no row, or only zeros and nulls, and would compare nothing.
Most changes drop a selection on a constant (one warehouse, one store, 180 items) or move it; a few drop a
condition of a join or compare another column, where no two of so few rows meet. The operators stay as they
are. The changes apply to the text on one line; docs/coverage.md lists them.
"""

from __future__ import annotations

RELAXED: dict[tuple[str, int], tuple[tuple[str, str], ...]] = {
    ("tpch", 17): (("AND p_brand = 'Brand#23'", ""),),
    ("tpcds", 3): (("AND item.i_manufact_id = 128", ""),),
    ("tpcds", 4): (
        ("AND t_s_firstyear.sale_type = 's'", ""),
        ("AND t_c_secyear.sale_type = 'c'", ""),
    ),
    ("tpcds", 8): (
        ("HAVING count(*) > 10", "HAVING count(*) > 0"),
        ("(SUBSTRING(s_zip, 1, 2) = SUBSTRING(V1.ca_zip, 1, 2))", "s_zip <> V1.ca_zip"),
    ),
    ("tpcds", 10): (
        (
            "AND ca_county IN ('Rush County', 'Toole County', 'Jefferson County', 'Dona Ana County', 'La Porte County')",
            "",
        ),
        ("AND d_year = 2002", ""),
    ),
    ("tpcds", 11): (("AND t_w_firstyear.sale_type = 'w'", ""),),
    ("tpcds", 13): (("AND d_year = 2001", ""),),
    ("tpcds", 16): (
        ("cs1.cs_warehouse_sk <> cs2.cs_warehouse_sk", "cs1.cs_item_sk <> cs2.cs_item_sk"),
        ("AND ca_state = 'GA'", ""),
        ("'2002-04-02'", "'2002-12-31'"),
    ),
    ("tpcds", 19): (("AND i_manager_id=8", ""),),
    ("tpcds", 23): (
        ("HAVING count(*) >4", "HAVING count(*) > 0"),
        ("(50/100.0)", "(5/100.0)"),
        ("AND d_moy = 2", ""),
    ),
    ("tpcds", 24): (
        ("AND s_zip = ca_zip", ""),
        ("AND s_market_id=8", ""),
        ("i_color = 'peach'", "i_color <> 'peach'"),
    ),
    ("tpcds", 25): (("WHERE d1.d_moy = 4 AND", "WHERE"),),
    ("tpcds", 30): (("AND d_year = 2002", ""),),
    ("tpcds", 31): (
        ("AND ws1.d_qoy = 1", ""),
        ("AND ws2.d_year = 2000", ""),
    ),
    ("tpcds", 32): (("WHERE i_manufact_id = 977 AND", "WHERE"),),
    ("tpcds", 37): (("AND i_manufact_id IN (677, 940, 694, 808)", ""),),
    ("tpcds", 38): (("c_first_name, d_date", "c_first_name, d_year"),),
    ("tpcds", 39): (("AND inv1.d_moy=1", ""),),
    ("tpcds", 41): (
        ("i_manufact_id BETWEEN 738 AND 738+40 AND", ""),
        ("i_color = 'powder'", "i_color <> 'powder'"),
        ("i_units = 'Ounce'", "i_units <> 'Ounce'"),
    ),
    ("tpcds", 44): (("ss_store_sk = 4", "ss_store_sk = 1"),),
    ("tpcds", 49): (("WHERE wr.wr_return_amt > 10000 AND", "WHERE"),),
    ("tpcds", 54): (
        ("AND i_class = 'maternity'", ""),
        ("AND d_moy = 12 AND d_year = 1998 )", "AND d_year = 1998 )"),
        ("AND ca_county = s_county AND ca_state = s_state", ""),
    ),
    ("tpcds", 58): (
        ("d_week_seq = (", "d_week_seq >= ("),
        ("0.9 *", "0.1 *"),
        ("1.1 *", "10 *"),
    ),
    ("tpcds", 64): (
        ("AND i_color IN ('purple', 'burlywood', 'indian', 'spring', 'floral', 'medium')", ""),
        ("AND cs1.syear = 1999", ""),
    ),
    ("tpcds", 65): (("sc.revenue <= 0.1 *", "sc.revenue <= 0.9 *"),),
    ("tpcds", 73): (("AND cnt BETWEEN 1 AND 5", ""),),
    ("tpcds", 74): (("AND t_s_firstyear.sale_type = 's'", ""),),
    ("tpcds", 82): (("AND i_manufact_id IN (129, 270, 821, 423)", ""),),
    ("tpcds", 83): (("d_date IN ('2000-06-30', '2000-09-27', '2000-11-17')", "d_year = 2000"),),
    ("tpcds", 85): (
        ("AND d_year = 2000", ""),
        ("AND ws_sales_price BETWEEN 100.00 AND 150.00", ""),
    ),
    ("tpcds", 88): (("AND store.s_store_name = 'ese'", ""),),
    ("tpcds", 90): (("AND web_page.wp_char_count BETWEEN 5000 AND 5200", ""),),
    ("tpcds", 91): (("AND hd_buy_potential LIKE 'Unknown%'", ""),),
    ("tpcds", 92): (("WHERE i_manufact_id = 350 AND", "WHERE"),),
    ("tpcds", 93): (("AND r_reason_desc = 'reason 28'", ""),),
    ("tpcds", 94): (
        ("ws1.ws_warehouse_sk <> ws2.ws_warehouse_sk", "ws1.ws_item_sk <> ws2.ws_item_sk"),
        ("AND ca_state = 'IL'", ""),
        ("AND web_company_name = 'pri'", ""),
        ("'1999-04-02'", "'1999-12-31'"),
    ),
    ("tpcds", 95): (
        ("ws1.ws_warehouse_sk <> ws2.ws_warehouse_sk", "ws1.ws_item_sk <> ws2.ws_item_sk"),
        ("AND ca_state = 'IL'", ""),
        ("AND web_company_name = 'pri'", ""),
        ("'1999-04-02'", "'1999-12-31'"),
    ),
    ("tpcds", 96): (("AND store.s_store_name = 'ese'", ""),),
}


def relaxed(kind: str, number: int, text: str) -> str:
    """A query on one line, loosened so that it selects something."""
    for old, new in RELAXED.get((kind, number), ()):
        assert old in text, f"{kind} {number} has no {old!r}"
        text = text.replace(old, new)
    return text
