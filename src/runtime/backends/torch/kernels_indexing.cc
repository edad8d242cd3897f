// Ops that read or place elements by computed indices.
#include <functional>

#include "kernel.h"

namespace heddle::torch_backend {
namespace {

// Converts negative indices, which count from the end.
at::Tensor from_the_end(const at::Tensor& indices, int64_t size) {
  const at::Tensor i = indices.to(at::kLong);
  return at::where(i < 0, i + size, i);
}

int64_t elements_between(const Shape& shape, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t i = begin; i < end; ++i) result *= shape[i];
  return result;
}

// Gathers zeros for indices outside the axis, as OpenVINO's ops of opset 7 and later do. `gather` gets only
// valid indices.
at::Tensor gather_inside(const at::Tensor& indices, int64_t size,
                         const std::function<at::Tensor(const at::Tensor& indices)>& gather) {
  const at::Tensor inside = at::logical_and(indices >= 0, indices < size);
  if (inside.is_cpu() && inside.all().item<bool>()) return gather(indices);
  if (size == 0) return at::zeros_like(gather(indices));
  at::Tensor found = gather(at::clamp(indices, 0, size - 1));
  return at::where(inside, found, at::zeros({}, found.options()));
}

Result<Kernel> make_gather(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, site.axis(2, site.rank()));
  const int64_t batch = site.node.attribute<int64_t>("batch_dims", 0);
  const int64_t batch_dims = batch < 0 ? batch + site.rank(1) : batch;
  if (batch_dims < 0 || batch_dims > axis || batch_dims > site.rank(1))
    return site.refuse("batch_dims is " + std::to_string(batch) + "; expected at most its axis and rank");
  const Shape &x = site.in(0), &index = site.in(1);
  const auto a = static_cast<size_t>(axis), b = static_cast<size_t>(batch_dims);
  const int64_t size = x[a];
  if (b == 0) {
    // The result has the indices' axis in the place of the gathered one.
    Shape lane(x.size(), 1);
    lane[a] = -1;
    return one([=, shape = site.out()](Operands in) {
      const at::Tensor places = from_the_end(in[1], size).reshape(lane);
      const auto gather = [&](const at::Tensor& i) { return at::index_select(in[0], axis, i.reshape({-1})); };
      return gather_inside(places, size, gather).reshape(shape);
    });
  }
  const Shape flat = {elements_between(x, 0, b), elements_between(x, b, a), size,
                      elements_between(x, a + 1, x.size())};
  const int64_t count = elements_between(index, b, index.size());
  return one([=, shape = site.out()](Operands in) {
    const at::Tensor places = from_the_end(in[1], size).reshape({flat[0], 1, count, 1});
    const auto gather = [&](const at::Tensor& i) {
      return at::gather(in[0].reshape(flat), 2, i.expand({flat[0], flat[1], count, flat[3]}));
    };
    return gather_inside(places, size, gather).reshape(shape);
  });
}

Result<Kernel> make_gather_elements(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, site.axis_attribute("axis", 0, site.rank()));
  return one([axis](Operands in) { return at::gather(in[0], axis, from_the_end(in[1], in[0].size(axis))); });
}

// Rows of a tensor flattened to [batch, rows, rest], and the rows that the index tuples name: [batch, count].
struct RowShape {
  Shape flat;                    // of the data
  std::vector<int64_t> indexed;  // the dimensions that a tuple indexes
  int64_t count = 0;
};

Result<RowShape> rows_of(const OpSite& site, size_t batch_dims) {
  const Shape &x = site.in(0), &index = site.in(1);
  if (index.empty() || batch_dims >= index.size() || batch_dims > x.size())
    return site.refuse("its indices are " + shape_text(index) + ", a rank that is not supported");
  const int64_t tuple = index.back();
  if (tuple < 0 || batch_dims + static_cast<size_t>(tuple) > x.size())
    return site.refuse("its indices name more dimensions than its tensor has");
  const size_t end = batch_dims + static_cast<size_t>(tuple);
  RowShape rows;
  rows.indexed.assign(x.begin() + static_cast<int64_t>(batch_dims), x.begin() + static_cast<int64_t>(end));
  rows.flat = {elements_between(x, 0, batch_dims), elements_between(x, batch_dims, end),
               elements_between(x, end, x.size())};
  rows.count = elements_between(index, batch_dims, index.size() - 1);
  return rows;
}

at::Tensor row_numbers(const at::Tensor& indices, const RowShape& rows) {
  const auto tuple = static_cast<int64_t>(rows.indexed.size());
  const at::Tensor tuples = indices.to(at::kLong).reshape({rows.flat[0], rows.count, tuple});
  at::Tensor number = at::zeros({rows.flat[0], rows.count}, tuples.options());
  for (int64_t d = 0; d < tuple; ++d) {
    const int64_t size = rows.indexed[static_cast<size_t>(d)];
    const at::Tensor place = from_the_end(tuples.select(2, d), size);
    TORCH_CHECK(
        place.numel() == 0 || (place.min().item<int64_t>() >= 0 && place.max().item<int64_t>() < size),
        "an index lies outside its dimension");
    number = number * size + place;
  }
  return number;
}

Result<Kernel> make_gather_nd(const OpSite& site) {
  const int64_t batch = site.node.attribute<int64_t>("batch_dims", 0);
  if (batch < 0) return site.refuse("batch_dims is " + std::to_string(batch) + "; expected 0 or more");
  HEDDLE_ASSIGN_OR_RETURN(const RowShape rows, rows_of(site, static_cast<size_t>(batch)));
  return one([=, shape = site.out()](Operands in) {
    const at::Tensor number = row_numbers(in[1], rows).unsqueeze(2);
    return at::gather(in[0].reshape(rows.flat), 1, number.expand({-1, -1, rows.flat[2]})).reshape(shape);
  });
}

// ATen's names of reductions; empty: plain replacement.
Result<std::string> reduction_of(const OpSite& site, std::initializer_list<std::string_view> supported) {
  HEDDLE_ASSIGN_OR_RETURN(const auto name, site.choice("reduction", "none", supported));
  if (name == "none") return std::string();
  if (name == "sub") return std::string("sum");
  return name == "max" || name == "min" ? "a" + name : name;
}

at::Tensor place(const at::Tensor& x, int64_t axis, const at::Tensor& index, const at::Tensor& updates,
                 const std::string& reduction, bool with_initial) {
  if (reduction.empty()) return at::scatter(x, axis, index, updates);
  return at::scatter_reduce(x, axis, index, updates, reduction, with_initial);
}

Result<Kernel> make_scatter_elements(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, site.axis(3, site.rank()));
  HEDDLE_ASSIGN_OR_RETURN(const auto kind, reduction_of(site, {"none", "sum", "prod", "mean", "max", "min"}));
  const bool initial = site.node.attribute<bool>("use_init_val", true);
  return one([=](Operands in) {
    return place(in[0], axis, from_the_end(in[1], in[0].size(axis)), in[2], kind, initial);
  });
}

Result<Kernel> make_scatter_nd(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const RowShape rows, rows_of(site, 0));
  HEDDLE_ASSIGN_OR_RETURN(const auto kind,
                          reduction_of(site, {"none", "sum", "sub", "prod", "mean", "max", "min"}));
  const bool subtract = site.node.attribute<std::string>("reduction", "none") == "sub";
  return one([=, shape = site.out()](Operands in) {
    const at::Tensor number = row_numbers(in[1], rows).unsqueeze(2).expand({-1, -1, rows.flat[2]});
    const at::Tensor updates = in[2].reshape({1, rows.count, rows.flat[2]});
    return place(in[0].reshape(rows.flat), 1, number, subtract ? at::neg(updates) : updates, kind, true)
        .reshape(shape);
  });
}

Result<Kernel> make_scatter_update(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, site.axis(3, site.rank()));
  Shape updates = site.in(0);
  updates[static_cast<size_t>(axis)] = elements_between(site.in(1), 0, site.in(1).size());
  return one([=](Operands in) {
    const at::Tensor index = from_the_end(in[1], in[0].size(axis)).reshape({-1});
    return at::index_copy(in[0], axis, index, in[2].reshape(updates));
  });
}

// Negative indices: no position is set (opset 1), or as the mode says.
Result<Kernel> make_one_hot(const OpSite& site) {
  const auto rank = static_cast<int64_t>(site.out().size());
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, site.axis_attribute("axis", -1, rank));
  HEDDLE_ASSIGN_OR_RETURN(const auto mode, site.choice("negative_indices_mode", "ignore_negative",
                                                       {"ignore_negative", "normalize"}));
  const int64_t depth = site.out()[static_cast<size_t>(axis)];
  Shape row(site.out().size(), 1);
  row[static_cast<size_t>(axis)] = depth;
  const bool normalize = mode == "normalize";
  return one([=](Operands in) {
    const at::Tensor given = normalize ? from_the_end(in[0], depth) : in[0].to(at::kLong);
    const at::Tensor places = at::arange(depth, given.options()).reshape(row);
    return at::where(given.unsqueeze(axis) == places, in[2], in[3]);
  });
}

// Of equal elements the one with the smaller index comes first.
Result<Kernel> make_top_k(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, site.axis_attribute("axis", -1, site.rank()));
  const bool largest = site.node.attribute<std::string>("mode", "max") == "max";
  const bool by_index = site.node.attribute<std::string>("sort", "value") == "index";
  const int64_t count = site.out()[static_cast<size_t>(axis)];
  return Kernel([=](Operands in) {
    const auto sorted = at::sort(in[0], true, axis, largest);
    at::Tensor values = std::get<0>(sorted).narrow(axis, 0, count);
    at::Tensor places = std::get<1>(sorted).narrow(axis, 0, count);
    if (by_index) {
      places = std::get<0>(at::sort(places, axis));
      values = at::gather(in[0], axis, places);
    }
    return Tensors{values, places};
  });
}

// Supports one element only, as otherwise the number of distinct ones is unknown. Outputs: the element, its
// first index, each input element's index among the distinct ones, and the counts.
Result<Kernel> make_unique(const OpSite& site) {
  int64_t count = elements_between(site.in(0), 0, site.in(0).size());
  if (site.has_input(1)) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, site.axis(1, site.rank()));
    count = site.in(0)[static_cast<size_t>(axis)];
  }
  if (count != 1)
    return site.refuse("it has " + std::to_string(count) +
                       " elements; expected one, as the number of distinct ones must be known");
  return Kernel([shape = site.out()](Operands in) {
    const at::Tensor zero = at::zeros({1}, in[0].options().dtype(at::kLong));
    return Tensors{in[0].reshape(shape), zero, zero, zero + 1};
  });
}

constexpr KernelEntry kIndexingKernels[] = {
    {"Gather", 1, 8, make_gather},
    {"GatherElements", 6, 6, make_gather_elements},
    {"GatherND", 5, 8, make_gather_nd},
    {"OneHot", 1, 16, make_one_hot},
    {"ScatterElementsUpdate", 3, 12, make_scatter_elements},
    {"ScatterNDUpdate", 3, 15, make_scatter_nd},
    {"ScatterUpdate", 3, 3, make_scatter_update},
    {"TopK", 1, 11, make_top_k},
    {"Unique", 10, 10, make_unique},
};

}  // namespace

std::span<const KernelEntry> indexing_kernels() { return kIndexingKernels; }

}  // namespace heddle::torch_backend
